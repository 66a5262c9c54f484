"""Random access to the lines of a text file."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator

import numpy as np

from zoo.data.files import FileBytes
from zoo.errors import DataError

_STRIDE = 16
"""The index has the position of every 16th line, half a byte per line."""
_TABLE = "not text; use the dataset hf-datasets, with the file as its path"
_BINARY = {
    codecs.BOM_UTF16_LE: "UTF-16; convert it to UTF-8",
    codecs.BOM_UTF16_BE: "UTF-16; convert it to UTF-8",
    b"PAR1\x15": f"Parquet, {_TABLE}",
    b"ARROW1\0\0": f"Arrow, {_TABLE}",
    b"\x1f\x8b\x08": "compressed by gzip; its name must end in .gz",
    b"\xfd7zXZ\0": "compressed by xz; its name must end in .xz",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard; decompress it, or use .gz, .xz or .bz2",
    b"PK\x03\x04": "a zip archive or an Excel workbook (.xlsx), not text; extract it, or save the "
    "workbook as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel or Word file, not text; save it as CSV or text",
    b"SQLite format 3": "an SQLite database, not text; export the table as CSV",
    b"\x93NUMPY": "an array of NumPy, not text; use the dataset arrays",
}
_BINARY |= dict.fromkeys(
    (b"BZh%d1AY&SY" % level for level in range(1, 10)),
    "compressed by bzip2; its name must end in .bz2",
)
"""The first bytes of files that are not UTF-8 text, and what they are."""


class TextLines:
    """The lines of a UTF-8 text file, split at line feeds only; see `FileBytes`.

    Raises:
        DataError: if the file is missing, cannot be decompressed, is UTF-16 or, when a line is
            read, is not valid UTF-8.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = FileBytes(path)
        self.path = self._file.path
        start = self._file.read(0, 16)
        for signature, message in _BINARY.items():
            if start.startswith(signature):
                raise DataError(f"the file is {message}", self.origin(0))
        starts = [np.zeros(min(len(self._file), 1), np.int64)]
        count, position, last = 0, 0, b""
        for chunk in self._file.chunks():
            ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
            selected = ends[(_STRIDE - 1 - count) % _STRIDE :: _STRIDE]
            starts.append(selected + (position + 1))
            count, position, last = count + len(ends), position + len(chunk), chunk[-1:]
        self._starts = np.concatenate(starts)
        self._count = count + (last not in (b"", b"\n"))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < self._count:
            raise IndexError(f"line {index} of {self._count}")
        block, offset = divmod(index, _STRIDE)
        return self._decode(self._read_block(block)[offset], index)

    def __iter__(self) -> Iterator[str]:
        return self.read(0, self._count)

    def read(self, start: int, stop: int) -> Iterator[str]:
        """Yield the lines from `start` to `stop`."""
        for index, line in self._read_bytes(start, stop):
            yield self._decode(line, index)

    def raw(self) -> Iterator[bytes]:
        """Yield the lines without decoding them."""
        return (line for _, line in self._read_bytes(0, self._count))

    def require(self, index: int) -> str:
        """Return a line; raise DataError if it is empty."""
        text = self[index]
        if not text.strip():
            raise DataError("the line is empty", self.origin(index))
        return text

    def origin(self, index: int) -> str:
        """Return file and line number, from 1."""
        return f"{self.path}:{index + 1}"

    def _read_bytes(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        for first in range(start - start % _STRIDE, stop, _STRIDE):
            lines = self._read_block(first // _STRIDE)
            for index in range(max(first, start), min(first + _STRIDE, stop)):
                yield index, lines[index - first]

    def _read_block(self, block: int) -> list[bytes]:
        following = self._starts[block + 1 : block + 2]
        end = int(following[0]) if len(following) else None
        return self._file.read(int(self._starts[block]), end).split(b"\n")

    def _decode(self, line: bytes, index: int) -> str:
        try:
            text = line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = f"byte 0x{line[error.start]:02x} at position {error.start + 1}"
            raise DataError(
                f"{wrong} is not valid UTF-8; convert the file to UTF-8", self.origin(index)
            ) from None
        return text.removeprefix("\ufeff") if index == 0 else text
