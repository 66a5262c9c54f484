"""Triton kernels of linear layers for few rows, with the norm before and what follows them.

Notation: M rows, K input width, N output width. A program computes BM rows of BN outputs. With one
row the products are summed elementwise, since reading the weights takes the time.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Conditions on constants select code at compile time, so they are not joined with others.
# ruff: noqa: SIM102, SIM108, SIM300

import triton
import triton.language as tl

LAYER = tl.constexpr(1)
RMS = tl.constexpr(2)
RELU = tl.constexpr(1)
SILU = tl.constexpr(2)
GELU = tl.constexpr(3)
GELU_TANH = tl.constexpr(4)


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
def _normalise(
    a, mean, rstd, norm_weight, norm_bias, k, K, NORM: tl.constexpr, DTYPE: tl.constexpr
):
    scaled = (a.to(tl.float32) - mean[:, None]) * rstd[:, None]
    weight = tl.load(norm_weight + k, mask=k < K, other=0.0).to(tl.float32)
    if NORM == LAYER:
        bias = tl.load(norm_bias + k, mask=k < K, other=0.0).to(tl.float32)
        return (scaled * weight[None, :] + bias[None, :]).to(DTYPE)
    return (scaled.to(DTYPE).to(tl.float32) * weight[None, :]).to(DTYPE)


@triton.jit
def _products(
    x,  # [M, K]
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
    STAGES: tl.constexpr,
):
    """Compute the products [BM, BN] of the rows of x and one or two sets of rows of weights."""
    DTYPE: tl.constexpr = x.dtype.element_ty
    PRECISION: tl.constexpr = "ieee" if DTYPE == tl.float32 else "tf32"
    mean = tl.zeros([BM], tl.float32)
    rstd = mean
    if NORM != 0:
        mean, rstd = _statistics(x, rows, M, K, x_m, eps, NORM, BM, NORM_BK)
    if BM == 1:
        acc = tl.zeros([BN, BK], tl.float32)
    else:
        acc = tl.zeros([BM, BN], tl.float32)
    other = acc
    for start in tl.range(0, K, BK, num_stages=STAGES):
        k = start + tl.arange(0, BK)
        within = valid[:, None] & (k < K)[None, :]
        w = tl.load(first_rows[:, None] + k[None, :], mask=within, other=0.0)  # [BN, BK]
        if PAIR:
            w2 = tl.load(second_rows[:, None] + k[None, :], mask=within, other=0.0)
        a = _load_rows(x, rows, k, M, K, x_m)
        if NORM != 0:
            a = _normalise(a, mean, rstd, norm_weight, norm_bias, k, K, NORM, DTYPE)
            if WRITE_NORMED:
                if tl.program_id(0) == 0:
                    at = normed + rows[:, None] * K + k[None, :]
                    tl.store(at, a, mask=(rows < M)[:, None] & (k < K)[None, :])
        if BM == 1:
            acc += w.to(tl.float32) * a.to(tl.float32)
            if PAIR:
                other += w2.to(tl.float32) * a.to(tl.float32)
        else:
            acc = tl.dot(a, tl.trans(w), acc, input_precision=PRECISION)
            if PAIR:
                other = tl.dot(a, tl.trans(w2), other, input_precision=PRECISION)
    if BM == 1:
        acc = tl.sum(acc, 1)[None, :]
        other = tl.sum(other, 1)[None, :]
    return acc, other


@triton.jit
def _activate(x, ACTIVATION: tl.constexpr):
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


@triton.jit
def linear(
    x,  # [M, K]
    weight,  # [N, K]
    bias,  # [N]
    gate,  # [N, K]
    gate_bias,  # [N]
    residual,  # [M, N]
    norm_weight,  # [K]
    norm_bias,  # [K]
    normed,  # [M, K], output
    output,  # [M, N]
    M,
    N,
    K,
    x_m,
    residual_m,
    eps,
    NORM: tl.constexpr,
    WRITE_NORMED: tl.constexpr,
    ACTIVATION: tl.constexpr,
    GATED: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    NORM_BK: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Compute residual + f(W norm(x) + b), or residual + f(G norm(x)) * (W norm(x))."""
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc, gates = _products(
        x,
        weight + n.to(tl.int64) * K,
        gate + n.to(tl.int64) * K,
        rows,
        n < N,
        norm_weight,
        norm_bias,
        normed,
        M,
        K,
        x_m,
        eps,
        WRITE_NORMED,
        NORM,
        GATED,
        BM,
        BN,
        BK,
        NORM_BK,
        STAGES,
    )
    if HAS_BIAS:
        acc += tl.load(bias + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
        if GATED:
            gates += tl.load(gate_bias + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    if GATED:
        acc = _activate(gates, ACTIVATION) * acc
    else:
        acc = _activate(acc, ACTIVATION)
    mask = (rows < M)[:, None] & (n < N)[None, :]
    if HAS_RESIDUAL:
        at = residual + rows[:, None] * residual_m + n[None, :]
        acc += tl.load(at, mask=mask, other=0.0).to(tl.float32)
    tl.store(output + rows[:, None].to(tl.int64) * N + n[None, :], acc.to(x.dtype.element_ty), mask)


@triton.jit
def project_heads(
    x,  # [M, K]
    query,  # [H D, K]
    key,  # [Hkv D, K]
    value,  # [Hkv D, K]
    query_bias,
    key_bias,
    value_bias,
    norm_weight,  # [K]
    norm_bias,  # [K]
    normed,  # [M, K], output
    queries,  # [M, H, D], output
    keys,  # [M, Hkv, S, D], output at position at[m]
    values,  # [M, Hkv, S, D], output at position at[m]
    at,  # [M]
    cos,  # [S, D / 2]
    sin,  # [S, D / 2]
    M,
    K,
    S,
    x_m,
    eps,
    H: tl.constexpr,
    HKV: tl.constexpr,
    D: tl.constexpr,
    NORM: tl.constexpr,
    WRITE_NORMED: tl.constexpr,
    ROTARY: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    NORM_BK: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Compute queries, keys and values of one step; BN pairs of dimensions of one head."""
    HALF: tl.constexpr = D // 2
    DTYPE: tl.constexpr = x.dtype.element_ty
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    head = tl.program_id(0) * BN // HALF
    pair = tl.program_id(0) * BN % HALF + tl.arange(0, BN)
    if head < H:
        weight, bias, h = query, query_bias, head
    elif head < H + HKV:
        weight, bias, h = key, key_bias, head - H
    else:
        weight, bias, h = value, value_bias, head - H - HKV
    if INTERLEAVED:
        one, two = h * D + 2 * pair, h * D + 2 * pair + 1
    else:
        one, two = h * D + pair, h * D + HALF + pair
    acc, other = _products(
        x,
        weight + one.to(tl.int64) * K,
        weight + two.to(tl.int64) * K,
        rows,
        pair < HALF,
        norm_weight,
        norm_bias,
        normed,
        M,
        K,
        x_m,
        eps,
        WRITE_NORMED,
        NORM,
        True,
        BM,
        BN,
        BK,
        NORM_BK,
        STAGES,
    )
    if HAS_BIAS:
        acc += tl.load(bias + one).to(tl.float32)[None, :]
        other += tl.load(bias + two).to(tl.float32)[None, :]
    position = tl.load(at + rows, mask=rows < M, other=0)  # [BM]
    if ROTARY:
        if head < H + HKV:
            place = position[:, None] * HALF + pair[None, :]
            c, s = tl.load(cos + place).to(tl.float32), tl.load(sin + place).to(tl.float32)
            acc, other = acc * c - other * s, acc * s + other * c
    mask = (rows < M)[:, None] & (pair < HALF)[None, :]
    acc, other = acc.to(DTYPE), other.to(DTYPE)
    if head < H:
        start = queries + rows[:, None] * (H * D)
    elif head < H + HKV:
        start = keys + ((rows * HKV).to(tl.int64) * S + position)[:, None] * D + h * (S - 1) * D
    else:
        start = values + ((rows * HKV).to(tl.int64) * S + position)[:, None] * D + h * (S - 1) * D
    tl.store(start + one[None, :], acc, mask=mask)
    tl.store(start + two[None, :], other, mask=mask)
