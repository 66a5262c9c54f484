"""Reads the files of a run folder: regular files only, and one kind of error for all damages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from zoo.artifact.checkpoint import tensor_reader
from zoo.artifact.layout import parse_json
from zoo.artifact.mapped_file import MappedFile
from zoo.errors import ArtifactError, ZooError, one_line, truncate
from zoo.files import check_regular, check_replaceable, os_error_message, read_limited
from zoo.interfaces.tensors import TensorReader

MAX_BYTES = 200_000_000
"""Largest size of a JSON file."""
MAX_VALUES = 10_000_000


class DamagedFile(ZooError):
    """Raised for a file of a run folder that cannot be used.

    Args:
        advice: what the user can do.
    """

    def __init__(self, path: Path, reason: str, advice: str) -> None:
        super().__init__(f"{path} is damaged: {truncate(one_line(reason), 200)}; {advice}")


def read_bytes(path: Path, advice: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file; raise DamagedFile if it cannot be read."""
    try:
        check_regular(path, os.stat(path).st_mode)
        with open(path, "rb") as file:
            content = read_limited(file, max_bytes)
    except OSError as error:
        raise DamagedFile(path, os_error_message(error), advice) from None
    if len(content) > max_bytes:
        raise DamagedFile(path, f"it has more than {max_bytes:,} bytes", advice)
    return content


def decode(content: bytes, path: Path, advice: str) -> str:
    """Return the text in the content of a file; raise DamagedFile if it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise DamagedFile(path, "it is not UTF-8 text", advice) from None


def read_json(path: Path, advice: str) -> dict[str, Any]:
    """Return the JSON object in a file; raise DamagedFile if it is something else."""
    return parse_object(decode(read_bytes(path, advice), path, advice), path, advice)


def parse_object(text: str, path: Path, advice: str, place: str = "it") -> dict[str, Any]:
    """Return the JSON object in a text; raise DamagedFile if it is something else.

    Args:
        place: the text in words, such as ``line 3``.
    """
    try:
        data = parse_json(text, max_values=MAX_VALUES)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(path, f"{place} is not valid JSON ({error})", advice) from None
    if not isinstance(data, dict):
        raise DamagedFile(path, f"{place} is not a JSON object", advice)
    return data


def open_tensor_file(path: Path, sha256: str | None, advice: str) -> TensorReader:
    """Return a reader of a safetensors file with this hash; None: of any content."""
    try:
        file = MappedFile(path)
        if sha256 is not None and file.sha256() != sha256:
            raise DamagedFile(path, "its content changed after it was saved", advice)
        return tensor_reader([file])
    except ArtifactError as error:
        reason = str(error).removeprefix(str(path)).lstrip(": ")
        raise DamagedFile(path, reason, advice) from None


def check_outputs(folder: Path, names: tuple[str, ...]) -> None:
    """Raise ZooError if something other than a regular file has the name of a file to write."""
    for name in names:
        try:
            check_replaceable(folder / name)
            if (folder / name).exists():
                check_regular(folder / name, os.stat(folder / name).st_mode)
        except OSError as error:
            reason = os_error_message(error)
            raise ZooError(
                f"{folder / name} cannot be written: {reason}; remove it, or use another folder"
            ) from None
