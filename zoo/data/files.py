"""Files of datasets: paths of specs, compressed files, random access to bytes."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import re
import sys
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from zoo.data.archive import find_archive, read_member
from zoo.errors import DataError
from zoo.files import atomic_write, os_error_message, user_cache

MAX_IN_MEMORY = 64 * 1024**2
"""Largest decompressed size of a compressed file that is kept in memory."""
MAX_SMALL_BYTES = 1024**3
MAX_RATIO = 200
"""Content of more bytes than `MAX_SMALL_BYTES` has at most this many times the size of its file."""
_CHUNK = 1024**2
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_OPENERS: dict[str, Callable[[Path], IO[bytes]]] = {
    ".gz": gzip.open,  # type: ignore[dict-item]
    ".xz": lzma.open,
    ".bz2": bz2.open,
}


def expand_path(path: str | os.PathLike[str]) -> Path:
    """Return a path of a spec with ``~``, ``$NAME`` and ``${NAME}`` replaced.

    Raises:
        DataError: if an environment variable is not set.
    """
    text = os.fspath(path)

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in os.environ:
            raise DataError(f"the environment variable {name} is not set", text)
        return os.environ[name]

    return Path(_VARIABLE.sub(value, os.path.expanduser(text)))


def cache_folder() -> Path:
    """Return the folder of cached data: ``zoo/data`` in the user's cache directory.

    Raises:
        DataError: if the user has no home directory.
    """
    parent = user_cache()
    if parent is None:
        raise DataError("no cache directory; set XDG_CACHE_HOME to the path of a folder")
    return parent / "zoo" / "data"


def unreadable(path: Path, error: Exception) -> DataError:
    """Return the error of a file that cannot be read."""
    return DataError(f"cannot be read: {os_error_message(error)}", str(path))


class FileBytes:
    """Random access to the bytes of a file, which may be larger than memory.

    A file with the suffix ``.gz``, ``.xz`` or ``.bz2`` is decompressed once: to memory if the
    result is small, otherwise to a file in `cache_folder`. The path of a tar archive followed by
    that of a file in it, ``tasks.tar.xz/qa1.txt``, is that file, which is kept in memory. Instances
    can be used by several threads, pickled and forked.

    Args:
        path: a path as in a spec; see `expand_path`.

    Raises:
        DataError: if the file is missing, is not a regular file or cannot be decompressed.
    """

    @staticmethod
    def suffix_of(path: Path) -> str:
        """Return the suffix of a path in lower case, without that of the compression: ``.npy`` for
        ``images.npy.xz``."""
        inner = path.with_suffix("") if path.suffix.lower() in _OPENERS else path
        return inner.suffix.lower()

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = expand_path(path)
        self._content: bytes | None = None
        self._file = self.path
        try:
            archive = find_archive(self.path)
            if archive is not None:
                self._content = read_member(archive, self.path.relative_to(archive).as_posix())
            elif not self.path.is_file():
                kind = "a directory" if self.path.is_dir() else "not a regular file"
                missing = not self.path.exists()
                raise DataError("no such file" if missing else f"it is {kind}", str(self.path))
            elif self.path.suffix.lower() in _OPENERS:
                self._decompress()
            size = self._file.stat().st_size if self._content is None else len(self._content)
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise unreadable(self.path, error) from None
        self._size = size
        self._descriptor: int | None = None

    def __len__(self) -> int:
        return self._size

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes from `start` to `stop`, or to the end."""
        stop = self._size if stop is None else min(stop, self._size)
        if self._content is not None:
            return self._content[start:stop]
        try:
            content = self._read_file(start, max(stop - start, 0))
        except OSError as error:
            raise unreadable(self.path, error) from None
        if len(content) < stop - start:
            raise DataError("the file has become shorter since it was opened", str(self.path))
        return content

    def read_rows(self, offset: int, size: int, rows: Sequence[int]) -> bytes:
        """Return some rows of equal size in bytes, of which the first is at `offset`."""
        if self._content is not None:
            content = memoryview(self._content)
            return b"".join([content[s : s + size] for s in (offset + r * size for r in rows)])
        return b"".join([self.read(s, s + size) for s in (offset + r * size for r in rows)])

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces."""
        for start in range(0, self._size, _CHUNK):
            yield self.read(start, start + _CHUNK)

    def _read_file(self, start: int, length: int) -> bytes:
        if sys.platform == "win32":  # has no pread
            with open(self._file, "rb") as file:
                file.seek(start)
                return file.read(length)
        if self._descriptor is None:
            descriptor = os.open(self._file, os.O_RDONLY)
            weakref.finalize(self, os.close, descriptor)
            self._descriptor = descriptor
        content = os.pread(self._descriptor, length, start)
        while len(content) < length:  # a call reads 2 GB at most
            more = os.pread(self._descriptor, length - len(content), start + len(content))
            if not more:
                break
            content += more
        return content

    def _decompress(self) -> None:
        """Set the content, or the path of the file with the content."""
        stat = self.path.stat()
        key = f"{os.path.realpath(self.path)}\0{stat.st_size}\0{stat.st_mtime_ns}"
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        cached = cache_folder() / name if user_cache() else None
        if cached is None or not cached.exists():
            with _OPENERS[self.path.suffix.lower()](self.path) as stream:
                content = stream.read(MAX_IN_MEMORY + 1)
                if len(content) <= MAX_IN_MEMORY:
                    self._content = content
                    return
                cached = cache_folder() / name
                cached.parent.mkdir(parents=True, exist_ok=True)
                max_bytes = max(MAX_SMALL_BYTES, MAX_RATIO * stat.st_size)
                with atomic_write(cached) as temporary, temporary.open("wb") as file:
                    while content:
                        file.write(content)
                        if file.tell() > max_bytes:
                            raise DataError(
                                f"it has {stat.st_size:,} bytes, but more than {max_bytes:,} after "
                                "decompression; decompress it yourself if you trust it",
                                str(self.path),
                            )
                        content = stream.read(_CHUNK)
        self._file = cached

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_descriptor": None}
