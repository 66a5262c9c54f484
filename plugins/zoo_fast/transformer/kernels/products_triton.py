"""Parts of the Triton kernels of linear layers for few rows: norm, products, activation.

Notation: M rows, K input width, N output width. A program computes BM rows of BN outputs. With one
row, or few in float32, a thread sums its own products. Tensor cores multiply more rows in float32,
as three products of parts in TF32.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Conditions on constants select code at compile time, so they are not joined with others.
# ruff: noqa: SIM300

import torch
import triton
import triton.language as tl

LAYER = tl.constexpr(1)
RMS = tl.constexpr(2)
RELU = tl.constexpr(1)
SILU = tl.constexpr(2)
GELU = tl.constexpr(3)
GELU_TANH = tl.constexpr(4)
DOT_ROWS = tl.constexpr(16)
"""Rows of a program from which tensor cores multiply numbers in float32."""
FLOAT32_PRECISION = tl.constexpr("tf32x3" if torch.version.hip is None else "ieee")
"""Precision of products of numbers in float32; AMD's tensor cores need no parts."""


@triton.jit
def _load_rows(x, rows, k, M, K, x_m):
    return tl.load(
        x + rows[:, None] * x_m + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0
    )


@triton.jit
def _statistics(x, rows, M, K, x_m, eps, NORM: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    """Compute the mean and the reciprocal standard deviation of the rows, [BM]."""
    mean = tl.zeros([BM], tl.float32)
    if NORM == LAYER:
        for first in range(0, K, BK):
            mean += tl.sum(
                _load_rows(x, rows, first + tl.arange(0, BK), M, K, x_m).to(tl.float32), 1
            )
        mean = mean / K
    variance = tl.zeros([BM], tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        centred = _load_rows(x, rows, k, M, K, x_m).to(tl.float32) - mean[:, None]
        variance += tl.sum(tl.where((k < K)[None, :], centred * centred, 0.0), 1)
    return mean, tl.rsqrt(variance / K + eps)


@triton.jit
def normalise(a, mean, rstd, weight, bias, NORM: tl.constexpr, DTYPE: tl.constexpr):
    scaled = (a.to(tl.float32) - mean[:, None]) * rstd[:, None]
    if NORM == LAYER:
        return (scaled * weight[None, :] + bias[None, :]).to(DTYPE)
    return (scaled.to(DTYPE).to(tl.float32) * weight[None, :]).to(DTYPE)


@triton.jit
def load_norm(norm_weight, norm_bias, k, K, NORM: tl.constexpr):
    """Load the weight and the bias of the norm, [BK]."""
    weight = tl.load(norm_weight + k, mask=k < K, other=0.0).to(tl.float32)
    if NORM == LAYER:
        return weight, tl.load(norm_bias + k, mask=k < K, other=0.0).to(tl.float32)
    return weight, weight


@triton.jit
def _add_products(acc, a, w, BM: tl.constexpr):
    """Add the products of a [BM, BK] and w [BN, BK] to acc: [BN, BK] for one row, [BM, BN, BK] for
    few in float32, else [BM, BN]."""
    PRECISION: tl.constexpr = FLOAT32_PRECISION if a.dtype == tl.float32 else None
    if BM == 1:
        acc += w.to(tl.float32) * a.to(tl.float32)
    elif a.dtype == tl.float32 and BM < DOT_ROWS:
        acc += w[None, :, :] * a[:, None, :]
    else:
        acc = tl.dot(a, tl.trans(w), acc, input_precision=PRECISION)
    return acc


@triton.jit
def prefetch_rows(rows, COUNT: tl.constexpr):
    """Load the first COUNT lines of 128 bytes of rows [BN] of weights into the L2 cache."""
    if COUNT > 0:
        address = rows.to(tl.int64)[:, None] + (tl.arange(0, COUNT) * 128)[None, :]
        tl.inline_asm_elementwise(
            "{ prefetch.global.L2 [$1]; mov.u32 $0, 0; }",
            "=r,l",
            [address],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )


@triton.jit
def load_weights(
    first_rows,  # [BN] pointers to the rows of the weights
    second_rows,  # [BN], used with PAIR
    valid,  # [BN]
    norm_weight,
    norm_bias,
    K,
    NORM: tl.constexpr,
    PAIR: tl.constexpr,
    BK: tl.constexpr,
    NORM_BK: tl.constexpr,
    LINES: tl.constexpr,
    PDL: tl.constexpr,
):
    """Load what does not depend on the kernel before, then wait for that kernel.

    With NORM_BK = 0, BK is at least K: the tiles [BN, BK] of the weights and the norm [BK] are
    returned. Otherwise the rows are loaded into the L2 cache.
    """
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    if NORM_BK == 0:
        k = tl.arange(0, BK)
        within = valid[:, None] & (k < K)[None, :]
        w = tl.load(first_rows[:, None] + k[None, :], mask=within, other=0.0)
        w2 = w
        if PAIR:
            w2 = tl.load(second_rows[:, None] + k[None, :], mask=within, other=0.0)
        scale = tl.zeros([BK], tl.float32)
        shift = scale
        if NORM != 0:
            scale, shift = load_norm(norm_weight, norm_bias, k, K, NORM)
    else:
        w = tl.zeros([1], tl.float32)
        w2, scale, shift = w, w, w
        if PDL:
            prefetch_rows(first_rows, LINES)
            if PAIR:
                prefetch_rows(second_rows, LINES)
    if PDL:
        tl.extra.cuda.gdc_wait()
    return w, w2, scale, shift


@triton.jit
def products(
    x,  # [M, K]
    loaded,  # of `load_weights`
    first_rows,  # [BN] pointers to the rows of the weights
    second_rows,  # [BN], used with PAIR
    rows,
    valid,  # [BN]
    norm_weight,
    norm_bias,
    normed,
    M,
    K,
    x_m,
    eps,
    WRITE_NORMED: tl.constexpr,
    NORM: tl.constexpr,
    PAIR: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    NORM_BK: tl.constexpr,
    SLICES: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Compute the products [BM, BN] of the rows of x and one or two sets of rows of weights."""
    DTYPE: tl.constexpr = x.dtype.element_ty
    if SLICES > 1:
        tl.static_assert(NORM == 0)
        return _sliced_products(
            x, first_rows, second_rows, rows, valid, M, K, x_m, PAIR, BM, BN, BK, SLICES, STAGES
        )
    if BM == 1:
        acc = tl.zeros([BN, BK], tl.float32)
    elif DTYPE == tl.float32 and BM < DOT_ROWS:
        acc = tl.zeros([BM, BN, BK], tl.float32)
    else:
        acc = tl.zeros([BM, BN], tl.float32)
    other = acc
    if NORM_BK == 0:
        w, w2, scale, shift = loaded
        k = tl.arange(0, BK)
        a = _load_rows(x, rows, k, M, K, x_m)
        if NORM != 0:
            mean = tl.zeros([BM], tl.float32)
            if NORM == LAYER:
                mean = tl.sum(a.to(tl.float32), 1) / K
            centred = tl.where((k < K)[None, :], a.to(tl.float32) - mean[:, None], 0.0)
            rstd = tl.rsqrt(tl.sum(centred * centred, 1) / K + eps)
            a = normalise(a, mean, rstd, scale, shift, NORM, DTYPE)
            if WRITE_NORMED:
                _store_normed(normed, a, rows, k, M, K, BM)
        acc = _add_products(acc, a, w, BM)
        if PAIR:
            other = _add_products(other, a, w2, BM)
    else:
        if NORM != 0:
            mean, rstd = _statistics(x, rows, M, K, x_m, eps, NORM, BM, NORM_BK)
        for start in tl.range(0, K, BK, num_stages=STAGES):
            k = start + tl.arange(0, BK)
            within = valid[:, None] & (k < K)[None, :]
            w = tl.load(first_rows[:, None] + k[None, :], mask=within, other=0.0)  # [BN, BK]
            if PAIR:
                w2 = tl.load(second_rows[:, None] + k[None, :], mask=within, other=0.0)
            a = _load_rows(x, rows, k, M, K, x_m)
            if NORM != 0:
                scale, shift = load_norm(norm_weight, norm_bias, k, K, NORM)
                a = normalise(a, mean, rstd, scale, shift, NORM, DTYPE)
                if WRITE_NORMED:
                    _store_normed(normed, a, rows, k, M, K, BM)
            acc = _add_products(acc, a, w, BM)
            if PAIR:
                other = _add_products(other, a, w2, BM)
    if BM == 1:
        acc = tl.sum(acc, 1)[None, :]
        other = tl.sum(other, 1)[None, :]
    elif DTYPE == tl.float32 and BM < DOT_ROWS:
        acc = tl.sum(acc, 2)
        other = tl.sum(other, 2)
    return acc, other


@triton.jit
def _sliced_products(
    x,
    first_rows,
    second_rows,
    rows,
    valid,
    M,
    K,
    x_m,
    PAIR: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    SLICES: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Compute `products` of rows without a norm; each warp multiplies its slices of the inputs.

    Sums of a tensor core depend on the sums before, so a warp that has all inputs would wait.
    """
    PRECISION: tl.constexpr = FLOAT32_PRECISION if x.dtype.element_ty == tl.float32 else None
    SLICE: tl.constexpr = BK // SLICES
    acc = tl.zeros([SLICES, BM, BN], tl.float32)
    other = acc
    within_slice = (tl.arange(0, SLICES) * SLICE)[:, None, None] + tl.arange(0, SLICE)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        k = start + within_slice  # [SLICES, 1, SLICE]
        within = valid[None, :, None] & (k < K)
        w = tl.load(first_rows[None, :, None] + k, mask=within, other=0.0)
        if PAIR:
            w2 = tl.load(second_rows[None, :, None] + k, mask=within, other=0.0)
        a = tl.load(
            x + rows[None, :, None] * x_m + k, mask=(rows < M)[None, :, None] & (k < K), other=0.0
        )
        acc = tl.dot(a, tl.permute(w, (0, 2, 1)), acc, input_precision=PRECISION)
        if PAIR:
            other = tl.dot(a, tl.permute(w2, (0, 2, 1)), other, input_precision=PRECISION)
    return tl.sum(acc, 0), tl.sum(other, 0)


@triton.jit
def _store_normed(normed, a, rows, k, M, K, BM: tl.constexpr):
    """Store the normalised rows once, in the programs of the first outputs."""
    if tl.program_id(0) < tl.cdiv(M, BM):
        at = normed + rows[:, None] * K + k[None, :]
        tl.store(at, a, mask=(rows < M)[:, None] & (k < K)[None, :])


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    if ACTIVATION == RELU:
        return tl.where(x > 0, x, 0.0)
    if ACTIVATION == SILU:
        return x / (1.0 + tl.exp(-x))
    if ACTIVATION == GELU:
        return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    if ACTIVATION == GELU_TANH:
        # tanh(z) = 1 - 2 / (1 + e^{2z}), here with z = sqrt(2 / pi) (x + 0.044715 x^3)
        z = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        return 0.5 * x * (2.0 - 2.0 / (1.0 + tl.exp(2.0 * z)))
    return x
