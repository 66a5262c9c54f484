"""The texts of a table as one stream of tokens, from which blocks are cut."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zoo.data.order import Indices
from zoo.data.padding import Padded, pad_ranges
from zoo.data.token_table import TokenTable
from zoo.interfaces import TensorSchema


class TokenStream:
    """The tokens of all rows of a table, one row after the other.

    If texts start with the token that ends them, as in GPT-2, it is between two texts once: the
    second one would be a target that is certain.

    Args:
        field: the start and end tokens of a text.
    """

    def __init__(self, table: TokenTable, field: TensorSchema) -> None:
        self.table = table
        size = len(field.prefix)
        self.shared = size if field.prefix == field.suffix[len(field.suffix) - size :] else 0

    def __len__(self) -> int:
        texts = len(self.table.offsets) - 1
        return len(self.table.tokens) - self.shared * max(texts - 1, 0)

    @cached_property
    def _starts(self) -> Indices:
        """The position of each text and the length of the stream [rows + 1]."""
        if not self.shared:
            return self.table.offsets
        texts_before = np.arange(len(self.table.offsets)) - 1
        starts: Indices = self.table.offsets - self.shared * texts_before.clip(min=0)
        return starts

    def texts(self, positions: Indices) -> NDArray[np.int64]:
        """Return the row of the text at each position."""
        return np.searchsorted(self._starts, positions, side="right") - 1

    def __getitem__(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Return the tokens at some positions."""
        if self.shared:
            positions = positions + self.shared * self.texts(positions)
        tokens: NDArray[Any] = self.table.tokens[positions]
        return tokens

    def pad_blocks(self, starts: Indices, size: int, pad: float) -> Padded:
        """Return blocks of consecutive tokens, padded."""
        return pad_ranges(self, starts, np.minimum(starts + size, len(self)), pad)
