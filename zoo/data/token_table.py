"""Encoded texts and labels of all examples in flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zoo.data.collation import length_mask
from zoo.data.order import Indices


@dataclass(frozen=True)
class TokenTable:
    """The token IDs of one key of all rows.

    Attributes:
        tokens: the IDs of all rows, one row after the other; an array or a memory-mapped file.
        offsets: row i has the IDs from offsets[i] to offsets[i + 1] [rows + 1].
    """

    tokens: NDArray[Any]
    offsets: Indices

    @classmethod
    def of(cls, rows: Sequence[NDArray[Any]], dtype: Any = np.int32) -> TokenTable:
        """Return the table of rows of IDs."""
        offsets = np.append(0, np.cumsum([row.size for row in rows], dtype=np.int64))
        flat = np.concatenate([np.ravel(row) for row in rows]) if rows else np.empty(0)
        return cls(flat.astype(dtype), offsets)

    def lengths(self) -> NDArray[np.int64]:
        """Return the number of IDs of each row."""
        return np.diff(self.offsets)

    def row(self, row: int) -> NDArray[Any]:
        """Return the IDs of one row."""
        return self.tokens[self.offsets[row] : self.offsets[row + 1]]

    def pad(self, rows: Indices, value: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the IDs of some rows, padded to the longest [B, L], and their lengths [B]."""
        return self._gather(self.offsets[rows], self.offsets[rows + 1], value)

    def blocks(
        self, starts: Indices, size: int, value: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return blocks of consecutive IDs of the whole table, padded, and their lengths."""
        return self._gather(starts, np.minimum(starts + size, len(self.tokens)), value)

    def _gather(
        self, starts: Indices, ends: Indices, value: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        lengths = ends - starts
        longest = int(lengths.max(initial=0))
        out = np.full((len(starts), longest), value, dtype=np.int64)
        first = np.cumsum(lengths) - lengths
        positions = np.arange(int(lengths.sum())) + np.repeat(starts - first, lengths)
        out[length_mask(lengths, longest)] = self.tokens[positions]
        return out, lengths
