"""Files of datasets: paths of specs, compressed files, random access to bytes."""

from __future__ import annotations

import bz2
import difflib
import gzip
import lzma
import os
import re
import sys
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from zoo.data.archive import Members, find_archive, list_members
from zoo.data.array_content import ArrayHeader, read_array_header, read_arrays
from zoo.data.bounds import max_content, too_large
from zoo.data.cache import entry_name, read_entry, write_entry
from zoo.errors import DataError, suggest, truncate
from zoo.files import os_error_message
from zoo.interfaces import Array

MAX_IN_MEMORY = 64 * 1024**2
"""Largest decompressed size of a compressed file that is kept in memory."""
_CHUNK = 1024**2
_CONTENT = "content"
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_SECRET = re.compile(
    r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|COOKIE|TOKENS?(_|$)|KEYS?(_|$)"
    r"|(^|_)(AUTH|PASS|PWD|PAT|DSN|URL|URI)(_|$)"
)
_OPENERS: dict[str, Callable[[Path], IO[bytes]]] = {
    ".gz": gzip.open,  # type: ignore[dict-item]
    ".tgz": gzip.open,  # type: ignore[dict-item]
    ".xz": lzma.open,
    ".bz2": bz2.open,
}


def expand_path(path: str | os.PathLike[str]) -> Path:
    """Return a path of a spec with ``~``, ``$NAME`` and ``${NAME}`` replaced.

    Messages show paths, so that variables whose names are those of secrets, such as ``HF_TOKEN``,
    are not replaced.

    Raises:
        DataError: if an environment variable is not set, or may have a secret.
    """
    text = os.fspath(path)

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if _SECRET.search(name.upper()) and name not in ("PWD", "OLDPWD"):
            raise DataError(
                f"the environment variable {name} is not used in paths: its name is that of a "
                "secret; use another variable",
                text,
            )
        if name not in os.environ:
            raise DataError(f"the environment variable {name} is not set", text)
        return os.environ[name]

    return Path(_VARIABLE.sub(value, os.path.expanduser(text)))


def unreadable(path: Path, error: Exception) -> DataError:
    """Return the error of a file that cannot be read."""
    return DataError(f"cannot be read: {os_error_message(error)}", str(path))


class FileBytes:
    """Random access to the bytes of a file, which may be larger than memory.

    A file with the suffix ``.gz``, ``.xz`` or ``.bz2`` is decompressed once: to memory if the
    result is small, otherwise to a file in `cache_folder`. The path of a tar archive followed by
    that of a file in it, ``tasks.tar.xz/qa1.txt``, is that file, which is kept in memory. The
    content has at most `max_content` bytes. Instances can be used by several threads, pickled and
    forked.

    Args:
        path: a path as in a spec; see `expand_path`.

    Attributes:
        max_bytes: how many bytes may be made of the file, see `max_content`.

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
            exists = archive is not None or self.path.exists()
            self.max_bytes = max_content((archive or self.path).stat().st_size if exists else 0)
            if archive is not None:
                self._content = _read_member(archive, self.path.relative_to(archive).as_posix())
            elif not self.path.is_file():
                kind = "a directory" if self.path.is_dir() else "not a regular file"
                missing = f"no such file{_suggest(self.path)}"
                raise DataError(f"it is {kind}" if exists else missing, str(self.path))
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

    def array_header(self) -> ArrayHeader:
        """Return the header of an array file (``.npy``); raise DataError if it is not valid."""
        try:
            return read_array_header(self.read(0, _CHUNK))
        except ValueError as error:
            reason = truncate(str(error), 200)
            raise DataError(f"it is not a valid .npy file: {reason}", str(self.path)) from None

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a ``.npz`` file; raise DataError if it is not valid."""
        try:
            return read_arrays(self.read(), self.max_bytes)
        except ValueError as error:
            reason = truncate(str(error), 200)
            raise DataError(f"it is not a valid .npz file: {reason}", str(self.path)) from None
        except DataError as error:
            raise DataError(error.message, str(self.path)) from None

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
        name = entry_name(["decompressed", *file_state(self.path)])
        entry = read_entry(name)
        if entry is None:
            with _OPENERS[self.path.suffix.lower()](self.path) as stream:
                content = stream.read(MAX_IN_MEMORY + 1)
                if len(content) <= MAX_IN_MEMORY:
                    self._content = content
                    return
                entry = write_entry(name, lambda folder: self._write(folder, content, stream))
        self._file = entry.folder / _CONTENT
        weakref.finalize(self, entry.close)

    def _write(self, folder: Path, content: bytes, stream: IO[bytes]) -> Mapping[str, Any]:
        """Write the content of a stream, of which a part was read, to a file in a folder."""
        with open(folder / _CONTENT, "wb") as file:
            while content:
                if file.tell() + len(content) > self.max_bytes:
                    message = f"it has more than {self.max_bytes:,} bytes after decompression"
                    raise too_large(message, str(self.path))
                file.write(content)
                try:
                    content = stream.read(_CHUNK)
                except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                    raise unreadable(self.path, error) from None
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_descriptor": None}


def file_state(path: Path) -> list[Any]:
    """Return path, size and times of a file, plain data that changes when the file changes.

    A program can set the time of the content, for example to that of the file it replaces, but not
    the time of the last change.
    """
    stat = path.stat()
    return [os.path.realpath(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _read_member(archive: Path, name: str) -> bytes:
    file, members = _open_archive(archive, *file_state(archive))
    if name not in members:
        raise DataError(f"no file '{name}' in the archive{suggest(name, members)}", str(archive))
    return file.read(*members[name])


@lru_cache(maxsize=4)
def _open_archive(archive: Path, *state: Any) -> tuple[FileBytes, Members]:
    """Return a decompressed archive and its files; its state is part of the key of the cache."""
    file = FileBytes(archive)
    return file, list_members(file)


def _suggest(path: Path) -> str:
    """Return a hint with the file of the folder whose name is most similar, if there is one."""
    try:
        names = [each.name for each in path.parent.iterdir()]
    except OSError:
        return ""
    close = difflib.get_close_matches(path.name, names[:10_000], n=1, cutoff=0.7)
    return f"; did you mean '{close[0]}'?" if close else ""
