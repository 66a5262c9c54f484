"""Files of an artifact, opened with `safetensors` and mapped into memory."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from zoo.artifact.header import (
    Header,
    check_digest,
    header_from_file,
    header_from_shards,
    read_hashes,
    shorten_list,
)
from zoo.artifact.layout import (
    DTYPES,
    MAX_HEADER,
    MAX_TENSORS,
    InvalidSafetensorsError,
    Layout,
    decode_header,
    parse_json,
)
from zoo.errors import ArtifactError
from zoo.files import os_error_message, read_limited

SINGLE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_SHARDS = 1_000

_SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}\.safetensors")
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_MAX_RETRIES = 50


def header_length(head: bytes, size: int) -> int:
    """Return the header length of a file of `size` bytes that begins with `head`."""
    length = int.from_bytes(head[:8], "little")
    # The length of a valid header can have the first bytes of a pickle, as 640 has.
    if head.startswith(_PICKLES) and length > min(size - 8, MAX_HEADER):
        raise InvalidSafetensorsError("it is a pickle (torch.save), which can execute code")
    if len(head) < 8 or length > size - 8:
        raise InvalidSafetensorsError("it ends before the end of its header")
    if length > MAX_HEADER:
        raise InvalidSafetensorsError(
            f"its header has {length:,} bytes; at most {MAX_HEADER:,} are allowed"
        )
    return length


class MappedFile:
    """A safetensors file of any library. The header is parsed strictly before it is mapped.

    Tensors share the private pages of the mapping, so in-place updates do not change the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise InvalidSafetensorsError("it is not a regular file")
            with open(path, "rb") as file:
                self.size = os.fstat(file.fileno()).st_size
                length = header_length(file.read(8), self.size)
                self.layout: Layout = decode_header(file.read(length), self.size - 8 - length)
                self._begin = 8 + length
                safe_open(path, framework="pt")  # a second check of the header
                self._data = torch.from_file(
                    os.fspath(path), shared=False, size=self.size, dtype=torch.uint8, device="cpu"
                ).numpy()
                if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    raise InvalidSafetensorsError("it was replaced while it was opened")
        except FileNotFoundError:
            raise ArtifactError(f"{path}: no such file") from None
        # The file is opened again by its path, and torch raises RuntimeError if it is gone.
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            if path.suffix in (".yaml", ".yml"):
                raise ArtifactError(
                    f"{path} is a spec, not a model; build one with "
                    f"'zoo compose {path} -o model.safetensors'"
                ) from None
            raise ArtifactError(
                f"{path} is not a valid safetensors file: {os_error_message(error)}"
            ) from None

    def sha256(self) -> str:
        """Return the hash of all bytes of the file, as they are mapped."""
        return hashlib.sha256(self._data.data).hexdigest()

    def tensor(self, name: str) -> Tensor:
        """Return a tensor without a copy, if its data is aligned.

        Each tensor has a storage of its own size, so that `torch.save` does not write the file.
        """
        stored = self.layout.tensors[name]
        dtype, begin = DTYPES[stored.dtype], self._begin + stored.begin
        if not stored.nbytes:
            return torch.empty(stored.shape, dtype=dtype, device="cpu")
        if begin % dtype.itemsize:  # not all writers align
            copy = self._data[begin : begin + stored.nbytes].copy()
            return torch.from_numpy(copy).view(dtype).view(stored.shape)
        count = stored.nbytes // dtype.itemsize
        flat = torch.frombuffer(self._data, dtype=dtype, count=count, offset=begin)
        return flat if len(stored.shape) == 1 else flat.view(stored.shape)

    def read(self, name: str) -> Tensor:
        """Return a copy of a tensor, read from the file, so that no page of it stays mapped."""
        stored = self.layout.tensors[name]
        begin = self._begin + stored.begin
        if not stored.nbytes:
            return torch.empty(stored.shape, dtype=DTYPES[stored.dtype], device="cpu")
        try:
            data = numpy.fromfile(self.path, numpy.uint8, count=stored.nbytes, offset=begin)
        except OSError as error:
            raise ArtifactError(f"{self.path} cannot be read: {os_error_message(error)}") from None
        if data.size != stored.nbytes:
            raise ArtifactError(f"{self.path} was changed while it was read")
        return torch.from_numpy(data).view(DTYPES[stored.dtype]).view(stored.shape)


class ArtifactFile(MappedFile):
    """One file of an artifact, whose digest matches its header."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        check_digest(path, self.layout)
        self.hashes = read_hashes(path, self.layout)


@dataclass(frozen=True)
class Artifact(Mapping[str, Tensor]):
    """An open artifact: its header, and its tensors by name."""

    header: Header
    files: tuple[ArtifactFile, ...]
    file_of: Mapping[str, ArtifactFile]

    def __getitem__(self, name: str) -> Tensor:
        return self.file_of[name].tensor(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.file_of)

    def __len__(self) -> int:
        return len(self.file_of)


def open_artifact(path: str | os.PathLike[str]) -> Artifact:
    """Open an artifact: a file, a directory that contains one, or the index of its shards."""
    location = resolve_path(path)
    opener = _open_shards if location.name.endswith(".json") else _open_single_file
    return _retry_while_replaced(location, lambda: opener(location))


def resolve_path(path: str | os.PathLike[str]) -> Path:
    """Return the file or the index of the artifact at a path."""
    location = Path(path)
    if not os.path.isdir(location):
        return location
    for name in (SINGLE_FILE, INDEX):
        if os.path.lexists(location / name):
            return location / name
    newest = _newest_checkpoint(location)
    if newest is not None:
        raise ArtifactError(
            f"{path} has no model yet, because its training has not finished; use its newest "
            f"checkpoint, {newest}, or continue with zoo train SPEC -o {path} --resume"
        )
    raise ArtifactError(f"{path} is a directory without a model ({SINGLE_FILE} or {INDEX})")


def _newest_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint with a model in the folder of a training run."""
    files = [
        *folder.glob(f"checkpoints/step-*/{SINGLE_FILE}"),
        *folder.glob(f"step-*/{SINGLE_FILE}"),
    ]
    found = sorted((file.parent for file in files), key=lambda path: (len(path.name), path.name))
    return found[-1] if found else None


def _retry_while_replaced(path: Path, attempt: Callable[[], Artifact]) -> Artifact:
    """Retry as long as another process replaces the file while it is opened."""
    for number in range(_MAX_RETRIES):
        before = _file_state(path)
        try:
            return attempt()
        except ArtifactError:
            if _file_state(path) == before:
                raise
        time.sleep(number / 1000)
    return attempt()


def _file_state(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is replaced, even by one of the same content."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _open_single_file(path: Path) -> Artifact:
    file = ArtifactFile(path)
    return Artifact(header_from_file(file), (file,), dict.fromkeys(file.layout.tensors, file))


def _open_shards(index: Path) -> Artifact:
    weight_map, model_id = read_index(index)
    names = sorted(set(weight_map.values()))
    missing = [name for name in names if not os.path.exists(index.parent / name)]
    if missing:
        raise ArtifactError(f"{index} lists shards that do not exist: {shorten_list(missing)}")
    files = tuple(ArtifactFile(index.parent / name) for name in names)
    header = header_from_shards(index, weight_map, model_id, files)
    file_of = {name: file for file in files for name in file.layout.tensors}
    return Artifact(header, files, file_of)


def read_index(index: Path) -> tuple[dict[str, str], str | None]:
    """Return the shard of each tensor and the identity of the model, from an index."""
    try:
        data: Any = parse_json(_read_text(index), max_values=4 * MAX_TENSORS)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{index} is not a valid index: {error}") from None
    weight_map = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise ArtifactError(f"{index} is not a valid index: it has no weight_map")
    for name in weight_map.values():
        if not isinstance(name, str) or not _SHARD.fullmatch(name):
            raise ArtifactError(
                f"{index} lists {ascii(name)[:80]}, which is not a safetensors file next to it"
            )
    if len(set(weight_map.values())) > MAX_SHARDS:
        raise ArtifactError(f"{index} lists more than {MAX_SHARDS:,} shards")
    metadata = data.get("metadata")
    model_id = metadata.get("model") if isinstance(metadata, dict) else None
    return weight_map, model_id if isinstance(model_id, str) else None


def _read_text(index: Path) -> str:
    try:
        if not stat.S_ISREG(os.stat(index).st_mode):
            raise ValueError("it is not a regular file")
        with open(index, "rb") as file:
            content = read_limited(file, MAX_HEADER)
        if len(content) > MAX_HEADER:
            raise ValueError(f"it has more than {MAX_HEADER:,} bytes")
        return content.decode()
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{index} is not a valid index: {os_error_message(error)}") from None
