"""Sums over rows in Triton kernels, which are faster than torch's for few columns."""

from __future__ import annotations

import torch
from torch import Tensor

_ROWS, _COLUMNS = 128, 64


def column_sums(x: Tensor) -> Tensor:
    """Return the sum [C] of x [N, C] over N, in float32 and rounded to the dtype of x."""
    from zoo_fast.device.column_sums_triton import sum_blocks

    x = x.contiguous()
    N, C = x.shape
    blocks = -(-N // _ROWS)
    partial = torch.empty(1, blocks, C, dtype=torch.float32, device=x.device)
    sum_blocks[(blocks, -(-C // _COLUMNS))](
        x, partial, N, C, ROWS=_ROWS, COLUMNS=_COLUMNS, num_warps=4
    )
    return add_partials(partial, x.dtype)[0]


def add_partials(partial: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the sum [G, C] over P of partial [G, P, C], the results of P programs."""
    from zoo_fast.device.column_sums_triton import add

    G, P, C = partial.shape
    out = torch.empty(G, C, dtype=dtype, device=partial.device)
    rows, warps = (256, 8) if P > 64 else (64, 4)
    add[(G, -(-C // 16))](partial, out, P, C, ROWS=rows, COLUMNS=16, num_warps=warps)
    return out
