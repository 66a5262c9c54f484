"""Values that depend on positions only, computed once."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from zoo_positions.indices import indices

Rows = tuple[Tensor, ...]
MAX_ROWS = 2**17
"""Rows of further positions are computed at each call."""


class PositionTable:
    """Rows for positions 0, 1, ...: computed in float64, kept in the dtype of the states.

    Rows of integer offsets are kept for later calls, for each device and dtype. Those of a tensor
    offset, whose value is not known, are computed, as in compiled graphs. A smaller table is kept
    after a larger one is computed, since captured graphs may read it.

    Args:
        compute: maps positions [..., n], float64, to tensors [..., n, d].
    """

    def __init__(self, compute: Callable[[Tensor], Rows]) -> None:
        self.compute = compute
        self._tables: dict[tuple[torch.device, torch.dtype], list[Rows]] = {}
        self._last: tuple[tuple[Any, ...], Rows] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"compute": self.compute, "_tables": {}, "_last": None}

    def rows(self, count: int, offset: int | Tensor, like: Tensor) -> Rows:
        """Return the rows of positions offset to offset + count - 1, in the dtype of ``like``,
        or those of an offset [B, count] [B, count, d]."""
        # Subclasses of tensors, such as fake tensors, cannot be kept for other calls.
        if torch.compiler.is_compiling() or type(like) is not Tensor or like.is_meta:
            return self._compute(count, offset, like)
        if isinstance(offset, Tensor) or offset + count > MAX_ROWS:
            return self._compute(count, offset, like)
        key = (count, offset, like.device, like.dtype)
        last = self._last  # read once, since another thread can replace it
        if last is None or last[0] != key:
            table = self._table(offset + count, like)
            last = self._last = key, tuple(part[offset : offset + count] for part in table)
        return last[1]

    def _table(self, length: int, like: Tensor) -> Rows:
        tables = self._tables.setdefault((like.device, like.dtype), [])
        table = next((each for each in tables if len(each[0]) >= length), None)
        if table is None:
            size = max(256, 2 ** (length - 1).bit_length())
            # Tensors of inference mode could not be used in training later.
            with torch.inference_mode(False), torch.no_grad():
                table = self._compute(size, 0, like)
            tables.append(table)
        return table

    def _compute(self, count: int, offset: int | Tensor, like: Tensor) -> Rows:
        positions = indices(count, offset, like.device).double()
        return tuple(part.to(like.dtype) for part in self.compute(positions))
