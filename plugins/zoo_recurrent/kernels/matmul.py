"""Launch of the Triton kernel of matrix products."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from zoo.plugin import dependent_launch
from zoo_recurrent.kernels.product import product


class Blocks(NamedTuple):
    """Rows, columns and inner length of a block, number of parts, warps and stages."""

    rows: int
    columns: int
    inner: int
    parts: int
    warps: int
    stages: int


def multiply(
    a: Tensor,
    w: Tensor,
    blocks: Blocks,
    precision: str,
    *,
    bias: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the partial sums [parts, groups, rows, N] of a [groups, rows, K] times w.

    Args:
        w: [groups, K, N], contiguous.
        precision: 'tf32', or 'tf32x3' to round as float32 does.
        bias: [groups, N], if there is one part.
        out: used again if its shape is that of the result.
    """
    (groups, rows, K), N = a.shape, w.shape[2]
    inner = blocks.inner
    part = _cdiv(_cdiv(K, inner), blocks.parts) * inner
    parts = _cdiv(K, part)
    assert bias is None or parts == 1
    if out is None or out.shape != (parts, groups, rows, N):
        out = torch.empty(parts, groups, rows, N, dtype=torch.float32, device=a.device)
    product[(_cdiv(N, blocks.columns), groups * _cdiv(rows, blocks.rows), parts)](
        a,
        w,
        bias,
        out,
        *a.stride(),
        rows,
        K,
        N,
        PART=part,
        MB=blocks.rows,
        NB=blocks.columns,
        KB=inner,
        PRECISION=precision,
        num_warps=blocks.warps,
        num_stages=blocks.stages,
        **dependent_launch(a),
    )
    return out


def _cdiv(x: int, y: int) -> int:
    return -(-x // y)
