"""Sums of the parts that the programs of a kernel have computed."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


def add_partials(partial: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the sum [G, C] of partial [G, P, C] over P."""
    G, P, C = partial.shape
    out = torch.empty(G, C, dtype=dtype, device=partial.device)
    _add[(G, triton.cdiv(C, 32))](partial, out, P, C, ROWS=64, COLUMNS=32, num_warps=4)
    return out


@triton.jit
def _add(partial_ptr, out_ptr, P, C, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    group = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, P, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row[:, None] < P) & (column[None] < C)
        at = (group * P + row[:, None]) * C + column[None]
        total += tl.load(partial_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + group * C + column, tl.sum(total, axis=0), mask=column < C)
