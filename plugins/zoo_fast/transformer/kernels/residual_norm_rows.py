"""Triton kernels of bias, dropout, residual sum and LayerNorm or RMSNorm.

Notation: N rows, D width.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl


@triton.jit
def keep_mask(seed, row, p, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Return 1 / (1 - p) for elements of rows [ROWS] that dropout keeps, and 0 for others."""
    at = row[:, None] * (BLOCK // 4) + tl.arange(0, BLOCK // 4)[None]
    a, b, c, d = tl.rand4x(seed, at)
    drawn = tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), (ROWS, BLOCK))
    return tl.where(drawn >= p, 1.0 / (1.0 - p), 0.0)


@triton.jit
def forward_rows(
    x_ptr, y_ptr, y_bias_ptr, weight_ptr, bias_ptr, seed_ptr, sum_ptr, out_ptr, mean_ptr, rstd_ptr,
    N, D, p, eps,
    HAS_BIAS: tl.constexpr, DROPOUT: tl.constexpr, RMS: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    known = column < D
    inside = (row[:, None] < N) & known[None]
    at = row[:, None].to(tl.int64) * D + column[None]
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        y += tl.load(y_bias_ptr + column, mask=known, other=0.0).to(tl.float32)[None]
    if DROPOUT:
        y *= keep_mask(tl.load(seed_ptr), row, p, ROWS, BLOCK)
    rounded = (x + y).to(sum_ptr.dtype.element_ty)
    tl.store(sum_ptr + at, rounded, mask=inside)
    z = rounded.to(tl.float32)
    centred = tl.where(inside, z, 0.0)
    if not RMS:
        mean = tl.sum(centred, axis=1) / D
        tl.store(mean_ptr + row, mean, mask=row < N)
        centred = tl.where(inside, z - mean[:, None], 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=1) / D + eps)
    out = centred * rstd[:, None]
    out *= tl.load(weight_ptr + column, mask=known, other=0.0).to(tl.float32)[None]
    if not RMS:
        out += tl.load(bias_ptr + column, mask=known, other=0.0).to(tl.float32)[None]
    tl.store(out_ptr + at, out, mask=inside)
    tl.store(rstd_ptr + row, rstd, mask=row < N)


@triton.jit
def backward_rows(
    grad_ptr, second_ptr, sum_grad_ptr, sum_ptr, mean_ptr, rstd_ptr, weight_ptr, seed_ptr,
    grad_x_ptr, grad_y_ptr, partial_ptr,
    N, D, p,
    HAS_BIAS: tl.constexpr, DROPOUT: tl.constexpr, SECOND: tl.constexpr, SUM_GRAD: tl.constexpr,
    RMS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of the rows of a program, and their part of those of the weight, of the
    bias of LayerNorm, and of the bias of y."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    column = tl.arange(0, BLOCK)
    known = column < D
    weight = tl.load(weight_ptr + column, mask=known, other=0.0).to(tl.float32)
    grad_weight = tl.zeros((ROWS, BLOCK), tl.float32)
    grad_bias = tl.zeros((ROWS, BLOCK), tl.float32)
    grad_y_bias = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(program * ROWS, N, programs * ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row[:, None] < N) & known[None]
        at = row[:, None].to(tl.int64) * D + column[None]
        grad = tl.load(grad_ptr + at, mask=inside, other=0.0).to(tl.float32)
        if SECOND:
            grad += tl.load(second_ptr + at, mask=inside, other=0.0).to(tl.float32)
        z = tl.load(sum_ptr + at, mask=inside, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row, mask=row < N, other=0.0)
        if not RMS:
            z -= tl.load(mean_ptr + row, mask=row < N, other=0.0)[:, None]
        normed = tl.where(inside, z * rstd[:, None], 0.0)
        grad_weight += grad * normed
        if not RMS:
            grad_bias += grad
        scaled = grad * weight[None]
        along = tl.sum(scaled * normed, axis=1) / D
        grad_z = scaled - normed * along[:, None]
        if not RMS:
            grad_z -= (tl.sum(scaled, axis=1) / D)[:, None]
        grad_z *= rstd[:, None]
        grad_z = tl.where(inside, grad_z, 0.0)
        if SUM_GRAD:
            grad_z += tl.load(sum_grad_ptr + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(grad_x_ptr + at, grad_z, mask=inside)
        if DROPOUT:
            grad_z *= keep_mask(tl.load(seed_ptr), row, p, ROWS, BLOCK)
            tl.store(grad_y_ptr + at, grad_z, mask=inside)
        if HAS_BIAS:
            grad_y_bias += grad_z
    at = program * D + column
    tl.store(partial_ptr + at, tl.sum(grad_weight, axis=0), mask=known)
    if not RMS:
        at += programs * D
        tl.store(partial_ptr + at, tl.sum(grad_bias, axis=0), mask=known)
    if HAS_BIAS:
        at += programs * D
        tl.store(partial_ptr + at, tl.sum(grad_y_bias, axis=0), mask=known)


@triton.jit
def dropout_rows(seed_ptr, out_ptr, N, D, p, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Write the factors by which dropout multiplies the rows."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row[:, None] < N) & (column < D)[None]
    kept = keep_mask(tl.load(seed_ptr), row, p, ROWS, BLOCK)
    tl.store(out_ptr + row[:, None].to(tl.int64) * D + column[None], kept, mask=inside)
