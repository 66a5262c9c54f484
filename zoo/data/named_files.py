"""Files and folders that the parameters of a dataset name, and hashes of their content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from zoo.data.archive import find_archive
from zoo.data.files import expand_path
from zoo.errors import DataError


def named_paths(value: Any) -> list[Path]:
    """Return the existing files and folders that are named in parameters, without the ``type``.

    A path inside an archive is that of the archive.
    """
    if isinstance(value, Mapping):
        items = [item for key, item in value.items() if key != "type"]
        return [path for item in items for path in named_paths(item)]
    if isinstance(value, (list, tuple)):
        return [path for item in value for path in named_paths(item)]
    if not isinstance(value, str) or not value:
        return []
    try:
        path = expand_path(value).absolute()
        path = find_archive(path) or path
        return [path] if path.is_file() or path.is_dir() else []
    except (DataError, OSError, ValueError):  # not a path
        return []


@dataclass(frozen=True)
class PathContent:
    """What is known about the content of a file, or of all files in a folder.

    Attributes:
        files: number of files.
        size: their size in bytes.
        times: hash of the name, size and times of each file. A program can set the time of the
            content, but not that of the last change, so equal hashes have equal contents.
        sha256: hash of the names and contents; None if it is not known yet.
    """

    path: str
    files: int
    size: int
    times: str
    sha256: str | None = None

    @classmethod
    def of(cls, path: Path) -> PathContent:
        """Return what is known about a path without reading its files."""
        rows, size = [], 0
        for name, file in list_files(path):
            stat = file.stat()
            rows.append(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}\0{stat.st_ctime_ns}")
            size += stat.st_size
        times = hashlib.sha256("\n".join(rows).encode("utf-8", "surrogateescape")).hexdigest()
        return cls(str(path), len(rows), size, times)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def hash_content(path: Path) -> str:
    """Return the hash of a file, or of the names and contents of the files in a folder.

    The files are read in a stream.
    """
    total = hashlib.sha256()
    for name, file in list_files(path):
        with open(file, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        total.update(f"{name}\0{digest}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def list_files(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of a file, or of each regular file in a folder that is not hidden."""
    if path.is_file():
        yield "", path
        return
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if not name.startswith(".") and file.is_file():
                yield file.relative_to(path).as_posix(), file
