"""Triton kernels of additive scores.

Notation: N batch and heads, T queries, S keys, D hidden width. A score is the sum over d of

    v_d tanh(a_td + b_sd) = v_d (1 - 2 r_tsd),  r = 1 / (1 + e^{2a} e^{2b})

so the exponentials are computed once per query and per key, and a pair needs one reciprocal. The
derivative of tanh is 4 r (1 - r). Values are limited to ±40 before the exponential. This is exact
unless both a and b exceed 20, in which case e^{2(a + b)} is computed per pair instead. Tiles
[TB, SB, DB] are summed elementwise in a loop and reduced once.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

TWO_LOG2_E = tl.constexpr(2.8853900817779268)
LARGEST = tl.constexpr(115.41560327111707)  # 40 * TWO_LOG2_E
SATURATED = tl.constexpr(20.0)


@triton.jit
def _load_rows(pointer, rows, columns, R, D, stride_r, stride_d):
    mask = (rows < R) & (columns < D)
    values = tl.load(pointer + rows * stride_r + columns * stride_d, mask=mask, other=0.0)
    return values.to(tl.float32) * TWO_LOG2_E


@triton.jit
def _exp2(x):
    """Compute the exponential of x limited to ±LARGEST; NaN is kept."""
    x = tl.where(x > LARGEST, LARGEST, x)
    return tl.exp2(tl.where(x < -LARGEST, -LARGEST, x))


@triton.jit
def _reciprocal(a, exp_a, b, wide):
    """Compute r from scaled a [TB, 1, DB], its exponential, and scaled b [1, SB, DB]."""
    x = exp_a * _exp2(b)
    if wide:
        x = _exp2(a + b)
    # The reciprocal is more than one instruction, the reciprocal of the root is one.
    root = tl.rsqrt(1.0 + x)
    return root * root


@triton.jit
def scores(
    a,  # [N, T, D]
    b,  # [N, S, D]
    v,  # [D]
    smaller_maximum,  # [], the smaller of the largest absolute values of a and b
    output,  # [N, T, S]
    T,
    S,
    D,
    a_n,
    a_t,
    a_d,
    b_n,
    b_s,
    b_d,
    TB: tl.constexpr,
    SB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute the scores of a block of queries and keys; grid (N, T blocks, S blocks)."""
    n = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * TB + tl.arange(0, TB)
    columns = tl.program_id(2) * SB + tl.arange(0, SB)
    width = tl.arange(0, DB)
    wide = tl.load(smaller_maximum) > SATURATED
    sums = tl.zeros((TB, SB, DB), tl.float32)
    v_sums = tl.zeros((DB,), tl.float32)
    for first in range(0, D, DB):
        d = first + width
        x = _load_rows(a + n * a_n, rows[:, None, None], d[None, None, :], T, D, a_t, a_d)
        y = _load_rows(b + n * b_n, columns[None, :, None], d[None, None, :], S, D, b_s, b_d)
        weight = tl.load(v + d, mask=d < D, other=0.0).to(tl.float32)
        sums += weight[None, None, :] * _reciprocal(x, _exp2(x), y, wide)
        v_sums += weight
    result = tl.sum(v_sums, axis=0) - 2.0 * tl.sum(sums, axis=2)
    pointers = output + n * T * S + rows[:, None] * S + columns[None, :]
    tl.store(pointers, result, mask=(rows[:, None] < T) & (columns[None, :] < S))


@triton.jit
def gradient(
    a,  # [N, T, D]
    b,  # [N, S, D]
    v,  # [D]
    smaller_maximum,  # []
    g,  # [N, T, S], gradient of the scores
    grad_a,  # [N, T, D]
    g_r,  # [N, T blocks, D], sums of g * r over pairs, for the gradient of v
    T,
    S,
    D,
    a_n,
    a_t,
    a_d,
    b_n,
    b_s,
    b_d,
    g_n,
    g_t,
    g_s,
    WITH_V: tl.constexpr,
    TB: tl.constexpr,
    SB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute the gradient of a, and g_r if WITH_V; grid (N, T blocks, D blocks)."""
    n = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    rows = block * TB + tl.arange(0, TB)
    d = tl.program_id(2) * DB + tl.arange(0, DB)
    wide = tl.load(smaller_maximum) > SATURATED
    x = _load_rows(a + n * a_n, rows[:, None, None], d[None, None, :], T, D, a_t, a_d)
    exp_x = _exp2(x)
    a_sums = tl.zeros((TB, SB, DB), tl.float32)
    v_sums = tl.zeros((TB, SB, DB), tl.float32)
    for first in range(0, S, SB):
        columns = first + tl.arange(0, SB)
        y = _load_rows(b + n * b_n, columns[None, :, None], d[None, None, :], S, D, b_s, b_d)
        r = _reciprocal(x, exp_x, y, wide)
        pointers = g + n * g_n + rows[:, None, None] * g_t + columns[None, :, None] * g_s
        inside = (rows[:, None, None] < T) & (columns[None, :, None] < S)
        weight = tl.load(pointers, mask=inside, other=0.0).to(tl.float32)  # [TB, SB, 1]
        a_sums += weight * (r - r * r)
        if WITH_V:
            v_sums += weight * r
    factor = 4.0 * tl.load(v + d, mask=d < D, other=0.0).to(tl.float32)
    result = tl.sum(a_sums, axis=1) * factor[None, :]
    mask = (rows[:, None] < T) & (d[None, :] < D)
    tl.store(grad_a + n * T * D + rows[:, None] * D + d[None, :], result, mask=mask)
    if WITH_V:
        partial = tl.sum(tl.sum(v_sums, axis=1), axis=0)
        blocks = tl.cdiv(T, TB)
        tl.store(g_r + (n * blocks + block) * D + d, partial, mask=d < D)
