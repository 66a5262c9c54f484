"""Texts in files: lines, or a column of tab-separated lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from zoo.errors import DataError

_OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def read_texts(path: str | os.PathLike[str], column: int | None = None) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, or a column of them, numbered from 1.

    Raises:
        DataError: if the file cannot be read, or a line does not have the column.
    """
    file = Path(os.path.expanduser(os.path.expandvars(path)))
    opener = _OPENERS.get(file.suffix.lower(), open)
    number = 0
    try:
        with opener(file, "rb") as stream:
            for number, raw in enumerate(stream, 1):
                line = raw.decode("utf-8").rstrip("\r\n")
                yield line if column is None else _column(line, column, f"{file}:{number}")
    except UnicodeDecodeError:
        raise DataError("it is not UTF-8 text", f"{file}:{number}") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"cannot be read: {reason.lower()}", str(file)) from None


def _column(line: str, column: int, origin: str) -> str:
    cells = line.split("\t")
    if len(cells) < column:
        raise DataError(f"column {column} is missing; the line has {len(cells)}", origin)
    return cells[column - 1]
