"""Triton kernel of the norm before a linear layer, for few rows, and of the sum before it.

Notation: M rows, K width.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.transformer.kernels.products_triton import LAYER, load_norm, normalise


@triton.jit
def norm_rows(
    x,  # [M, K]
    norm_weight,  # [K]
    norm_bias,  # [K]
    output,  # [M, K]
    parts,  # [PARTS, M, K]
    bias,  # [K]
    summed,  # [M, K], output
    M,
    K,
    x_m,
    eps,
    NORM: tl.constexpr,
    PARTS: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    BK: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute LayerNorm or RMSNorm of one row, with PARTS > 0 of its sum with the parts and the
    bias; BK is at least K."""
    row, k = tl.program_id(0), tl.arange(0, BK)
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    scale, shift = load_norm(norm_weight, norm_bias, k, K, NORM)
    added = tl.zeros([BK], tl.float32)
    if HAS_BIAS:
        added = tl.load(bias + k, mask=k < K, other=0.0).to(tl.float32)
    if PDL:
        tl.extra.cuda.gdc_wait()
    values = tl.load(x + row * x_m + k, mask=k < K, other=0.0)
    if PARTS > 0:
        for part in tl.static_range(PARTS):
            added += tl.load(parts + (part * M + row) * K + k, mask=k < K, other=0.0)
        values = (values.to(tl.float32) + added).to(x.dtype.element_ty)
        tl.store(summed + row * K + k, values, mask=k < K)
    values = values[None, :]
    mean = tl.zeros([1], tl.float32)
    if NORM == LAYER:
        mean = tl.sum(values.to(tl.float32), 1) / K
    centred = tl.where((k < K)[None, :], values.to(tl.float32) - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, 1) / K + eps)
    result = normalise(values, mean, rstd, scale, shift, NORM, x.dtype.element_ty)
    tl.store(output + row * K + k[None, :], result, mask=(k < K)[None, :])
