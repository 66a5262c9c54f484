"""Encoded texts and labels of all examples in flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from zoo.data.encoding import Chunk
from zoo.data.order import Indices
from zoo.data.padding import Padded, pad_ranges, pad_text_ranges
from zoo.files import is_file_name


@dataclass(frozen=True)
class TokenTable:
    """The token IDs of one key of all rows.

    Attributes:
        tokens: the IDs of all rows, one row after the other; an array or a memory-mapped file.
        offsets: row i has the IDs from offsets[i] to offsets[i + 1] [rows + 1].
        widths: if a row is several texts of equal length, that length [rows].
    """

    tokens: NDArray[Any]
    offsets: Indices
    widths: Indices | None = None

    def lengths(self) -> NDArray[np.int64]:
        """Return the number of IDs of each row."""
        return np.diff(self.offsets)

    def row(self, row: int) -> NDArray[Any]:
        """Return the IDs of one row."""
        ids = self.tokens[self.offsets[row] : self.offsets[row + 1]]
        return ids if self.widths is None else ids.reshape(-1, self.widths[row])

    def pad(self, rows: Indices, pad: float) -> Padded:
        """Return the IDs of some rows, padded to the longest."""
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        if self.widths is None:
            return pad_ranges(self.tokens, starts, ends, pad)
        return pad_text_ranges(self.tokens, starts, ends, self.widths[rows], pad)


@dataclass(frozen=True)
class EncodedExamples:
    """The encoded examples of a dataset.

    Attributes:
        tables: the token IDs by key.
        rows: the index in the dataset of each row of the tables.
        files: the folder of memory-mapped files and the dtype of each key; None for tables in
            memory.
    """

    tables: dict[str, TokenTable]
    rows: Indices
    files: tuple[Path, dict[str, str]] | None = None

    @classmethod
    def from_chunks(cls, chunks: Sequence[Chunk], keys: Iterable[str]) -> EncodedExamples:
        """Return the examples of chunks in memory."""
        none = np.empty(0, np.int64)
        tables = {}
        for key in keys:
            lengths = np.concatenate([none, *(chunk.lengths[key] for chunk in chunks)])
            tokens = [chunk.tokens[key] for chunk in chunks] or [none]
            widths = [chunk.widths[key] for chunk in chunks if key in chunk.widths]
            tables[key] = TokenTable(
                np.concatenate(tokens),
                np.append(0, np.cumsum(lengths)),
                np.concatenate(widths) if widths else None,
            )
        return cls(tables, np.concatenate([none, *(chunk.rows for chunk in chunks)]))

    @classmethod
    def open(cls, folder: Path, dtypes: dict[str, str]) -> EncodedExamples:
        """Map the files that `write_chunks` wrote to a folder."""
        tables = {
            key: TokenTable(
                _map(folder / f"{key}.tokens", dtype),
                _map(folder / f"{key}.offsets", "int64"),
                _map(widths, "int64") if (widths := folder / f"{key}.widths").exists() else None,
            )
            for key, dtype in dtypes.items()
        }
        return cls(tables, _map(folder / "rows", "int64"), (folder, dtypes))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.files is not None:  # processes map the files instead of copying them
            return type(self).open, self.files
        return type(self), (self.tables, self.rows)


def write_chunks(folder: Path, chunks: Iterable[Chunk]) -> dict[str, str]:
    """Write encoded examples to files in a folder, one chunk at a time; return the dtypes."""
    dtypes: dict[str, str] = {}
    ends: dict[str, int] = {}
    with ExitStack() as stack:

        def open_file(name: str) -> BinaryIO:
            return stack.enter_context(open(folder / name, "wb"))

        files: dict[str, BinaryIO] = {"rows": open_file("rows")}
        for chunk in chunks:
            chunk.rows.tofile(files["rows"])
            for key, tokens in chunk.tokens.items():
                if key not in dtypes:
                    assert is_file_name(key), key
                    dtypes[key], ends[key] = str(tokens.dtype), 0
                    files[f"{key}.tokens"] = open_file(f"{key}.tokens")
                    files[f"{key}.offsets"] = open_file(f"{key}.offsets")
                    np.zeros(1, np.int64).tofile(files[f"{key}.offsets"])
                    if key in chunk.widths:
                        files[f"{key}.widths"] = open_file(f"{key}.widths")
                if key in chunk.widths:
                    chunk.widths[key].tofile(files[f"{key}.widths"])
                tokens.tofile(files[f"{key}.tokens"])
                offsets = ends[key] + np.cumsum(chunk.lengths[key])
                offsets.tofile(files[f"{key}.offsets"])
                ends[key] += len(tokens)
    return dtypes


def _map(path: Path, dtype: str) -> NDArray[Any]:
    if not path.stat().st_size:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray)
