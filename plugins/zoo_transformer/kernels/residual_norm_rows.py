"""Triton kernels of dropout, residual sum and LayerNorm.

Notation: N rows, D width.
"""

import triton
import triton.language as tl


@triton.jit
def keep_mask(seed, row, p, BLOCK: tl.constexpr):
    """Return 1 / (1 - p) for elements of a row that dropout keeps, and 0 for others."""
    at = row * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
    a, b, c, d = tl.rand4x(seed, at)
    drawn = tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), (BLOCK,))
    return tl.where(drawn >= p, 1.0 / (1.0 - p), 0.0)


@triton.jit
def forward_rows(
    x_ptr,
    y_ptr,
    weight_ptr,
    bias_ptr,
    seed_ptr,
    sum_ptr,
    out_ptr,
    mean_ptr,
    rstd_ptr,
    D,
    p,
    eps,
    DROPOUT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < D
    start = row.to(tl.int64) * D
    x = tl.load(x_ptr + start + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + start + at, mask=inside, other=0.0).to(tl.float32)
    if DROPOUT:
        y *= keep_mask(tl.load(seed_ptr), row, p, BLOCK)
    rounded = (x + y).to(sum_ptr.dtype.element_ty)
    tl.store(sum_ptr + start + at, rounded, mask=inside)
    z = rounded.to(tl.float32)
    mean = tl.sum(z) / D
    centred = tl.where(inside, z - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred) / D + eps)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + start + at, centred * rstd * weight + bias, mask=inside)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def backward_rows(
    grad_ptr,
    sum_grad_ptr,
    sum_ptr,
    mean_ptr,
    rstd_ptr,
    weight_ptr,
    seed_ptr,
    grad_x_ptr,
    grad_y_ptr,
    partial_ptr,
    N,
    D,
    p,
    DROPOUT: tl.constexpr,
    SUM_GRAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the gradients of the rows of a program, and their part of those of the norm."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    at = tl.arange(0, BLOCK)
    inside = at < D
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    grad_weight = tl.zeros((BLOCK,), tl.float32)
    grad_bias = tl.zeros((BLOCK,), tl.float32)
    for row in range(program, N, programs):
        start = tl.cast(row, tl.int64) * D
        grad = tl.load(grad_ptr + start + at, mask=inside, other=0.0).to(tl.float32)
        z = tl.load(sum_ptr + start + at, mask=inside, other=0.0).to(tl.float32)
        mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
        normed = tl.where(inside, (z - mean) * rstd, 0.0)
        grad_weight += grad * normed
        grad_bias += grad
        scaled = grad * weight
        along, level = tl.sum(scaled * normed) / D, tl.sum(scaled) / D
        grad_z = (scaled - normed * along - level) * rstd
        if SUM_GRAD:
            grad_z += tl.load(sum_grad_ptr + start + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(grad_x_ptr + start + at, grad_z, mask=inside)
        if DROPOUT:
            grad_z *= keep_mask(tl.load(seed_ptr), row, p, BLOCK)
            tl.store(grad_y_ptr + start + at, grad_z, mask=inside)
    tl.store(partial_ptr + program * D + at, grad_weight, mask=inside)
    tl.store(partial_ptr + (programs + program) * D + at, grad_bias, mask=inside)


@triton.jit
def dropout_rows(seed_ptr, out_ptr, D, p, BLOCK: tl.constexpr):
    """Write the factors by which dropout multiplies the rows."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = keep_mask(tl.load(seed_ptr), row, p, BLOCK)
    tl.store(out_ptr + row.to(tl.int64) * D + at, keep, mask=at < D)
