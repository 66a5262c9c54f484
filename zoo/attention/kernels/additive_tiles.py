"""Triton kernels of additive scores and of their gradients.

Notation: B batch, H heads, N = B * H, T queries, S keys, D hidden width. A score is the sum of

    v_d tanh(a_td + b_sd) = v_d (1 - 2 r_tsd),  r = 1 / (1 + e^{2a} e^{2b})

so the exponentials are computed once per query and per key, and a pair needs one reciprocal. The
derivative of tanh is 4 r (1 - r). The largest absolute values of a and b select one of three forms:

- PAIRED, up to 21 in total: two reciprocals from one, w/p + u/q = (wq + up) / (pq);
- SINGLE: a and b are limited to ±40 before the exponential, which is exact unless both exceed 20;
- WIDE: e^{2(a + b)} is computed for each pair.

All tensors are contiguous.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import os

import triton
import triton.language as tl

TWO_LOG2_E = tl.constexpr(2.8853900817779268)
LARGEST = tl.constexpr(115.41560327111707)  # 40 * TWO_LOG2_E
SATURATED = tl.constexpr(20.0)
LARGEST_PAIRED = tl.constexpr(21.0)  # (1 + e^42)^2 is finite in float32
WIDE = tl.constexpr(0)
SINGLE = tl.constexpr(1)
PAIRED = tl.constexpr(2)
NATIVE = tl.constexpr(os.environ.get("TRITON_INTERPRET") != "1")


@triton.jit
def _exp2(x):
    """Compute the exponential of x limited to ±LARGEST; NaN is kept."""
    x = tl.where(x > LARGEST, LARGEST, x)
    return tl.exp2(tl.where(x < -LARGEST, -LARGEST, x))


@triton.jit
def reciprocal(x):
    """Compute 1 / x in one instruction; the interpreter has no inline assembly."""
    if NATIVE:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    return 1.0 / x


@triton.jit
def exponentials(x, output, maximum, size, BLOCK: tl.constexpr):
    """Compute e^{2x}, and the largest absolute value of x; grid (blocks,)."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < size
    value = tl.load(x + index, mask=inside, other=0.0).to(tl.float32)
    tl.store(output + index, _exp2(value * TWO_LOG2_E), mask=inside)
    known = tl.where(value == value, tl.abs(value), 0.0)
    tl.atomic_max(maximum, tl.max(known, axis=0))


@triton.jit
def _load(pointer, rows, columns, R, D, FORM: tl.constexpr):
    """Load rows of exponentials, or in WIDE form of scaled values."""
    values = tl.load(pointer + rows * D + columns, mask=(rows < R) & (columns < D), other=0.0).to(
        tl.float32
    )
    return values * TWO_LOG2_E if FORM == WIDE else values


@triton.jit
def _one_plus(x, y, FORM: tl.constexpr):
    """Compute 1 + e^{2(a + b)} from the results of `_load`."""
    return 1.0 + _exp2(x + y) if FORM == WIDE else 1.0 + x * y


@triton.jit
def _scores(
    a, b, v, rows, columns, T, S, D, FORM: tl.constexpr,
    TB: tl.constexpr, SB: tl.constexpr, DB: tl.constexpr,
):  # fmt: skip
    """Compute the scores [TB, SB]; two blocks of d are loaded in each iteration."""
    width = tl.arange(0, DB)
    sums = tl.zeros((TB, SB, DB), tl.float32)
    v_sums = tl.zeros((DB,), tl.float32)
    rows, columns = rows[:, None, None], columns[None, :, None]
    for first in range(0, D, 2 * DB):
        d = first + width
        e = d + DB
        w = tl.load(v + d, mask=d < D, other=0.0).to(tl.float32)
        u = tl.load(v + e, mask=e < D, other=0.0).to(tl.float32)
        v_sums += w + u
        d, e, w, u = d[None, None, :], e[None, None, :], w[None, None, :], u[None, None, :]
        p = _one_plus(_load(a, rows, d, T, D, FORM), _load(b, columns, d, S, D, FORM), FORM)
        q = _one_plus(_load(a, rows, e, T, D, FORM), _load(b, columns, e, S, D, FORM), FORM)
        if FORM == PAIRED:
            sums += (w * q + u * p) * reciprocal(p * q)
        else:
            sums += w * reciprocal(p) + u * reciprocal(q)
    return tl.sum(v_sums, axis=0) - 2.0 * tl.sum(sums, axis=2)


@triton.jit
def scores(
    a,  # [N, T, D]
    b,  # [N, S, D]
    exp_a,  # [N, T, D], exponentials
    exp_b,  # [N, S, D]
    v,  # [H, D]
    maxima,  # [2], the largest absolute values of a and b
    output,  # [N, T, S]
    T,
    S,
    D,
    H,
    offset,
    CAUSAL: tl.constexpr,
    TB: tl.constexpr,
    SB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute the scores of a block of queries and keys; grid (N, T blocks, S blocks).

    If CAUSAL, blocks in which every pair is masked are not written.
    """
    n = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * TB + tl.arange(0, TB)
    first = tl.program_id(2) * SB
    if CAUSAL and first > tl.program_id(1) * TB + TB - 1 + offset:
        return
    columns = first + tl.arange(0, SB)
    largest_a, largest_b = tl.load(maxima), tl.load(maxima + 1)
    v += n % H * D
    pointers = output + n * T * S + rows[:, None] * S + columns[None, :]
    inside = (rows[:, None] < T) & (columns[None, :] < S)
    a, b, exp_a, exp_b = a + n * T * D, b + n * S * D, exp_a + n * T * D, exp_b + n * S * D
    if largest_a + largest_b <= LARGEST_PAIRED:
        result = _scores(exp_a, exp_b, v, rows, columns, T, S, D, PAIRED, TB, SB, DB)
        tl.store(pointers, result, mask=inside)
    elif tl.minimum(largest_a, largest_b) <= SATURATED:
        result = _scores(exp_a, exp_b, v, rows, columns, T, S, D, SINGLE, TB, SB, DB)
        tl.store(pointers, result, mask=inside)
    else:
        result = _scores(a, b, v, rows, columns, T, S, D, WIDE, TB, SB, DB)
        tl.store(pointers, result, mask=inside)


@triton.jit
def _gradients(
    a, b, v, g, grad_a, grad_b, g_r, T, S, D, begin, end, d, offset, FORM: tl.constexpr,
    CAUSAL: tl.constexpr, TB: tl.constexpr, SB: tl.constexpr, DB: tl.constexpr,
):  # fmt: skip
    """Add to the gradient of a, and compute those of b and g_r, for keys from begin to end.

    In tiles [SB, TB, DB] with TB warps, a thread has all keys of a query and a unit, so that sums
    over keys need no communication in the inner loop, and sums over queries only after it.
    """
    inside_d = d < D
    v_sums = tl.zeros((TB, DB), tl.float32)
    factor = 4.0 * tl.load(v + d, mask=inside_d, other=0.0).to(tl.float32)
    wide_d = d[None, None, :]
    for first_s in range(begin, end, SB):
        s = first_s + tl.arange(0, SB)
        y = _scale(_load(b, s[:, None, None], wide_d, S, D, WIDE), FORM)  # [SB, 1, DB]
        b_sums = tl.zeros((SB, TB, DB), tl.float32)
        first_query = 0
        if CAUSAL:
            first_query = tl.maximum(0, first_s - offset) // TB * TB
        for first_t in range(first_query, T, TB):
            t = first_t + tl.arange(0, TB)
            x = _scale(_load(a, t[None, :, None], wide_d, T, D, WIDE), FORM)  # [1, TB, DB]
            inside = (t[None, :, None] < T) & (s[:, None, None] < S)
            pairs = g + t[None, :, None] * S + s[:, None, None]
            weight = tl.load(pairs, mask=inside, other=0.0).to(tl.float32)  # [SB, TB, 1]
            r = reciprocal(_one_plus(x, y, FORM))
            product = weight * (r - r * r)
            b_sums += product
            v_sums += tl.sum(weight * r, axis=0)
            own = (t[:, None] < T) & inside_d[None, :]
            pointers = grad_a + t[:, None] * D + d[None, :]
            previous = tl.load(pointers, mask=own, other=0.0)
            tl.store(pointers, previous + tl.sum(product, axis=0), mask=own)
        result = tl.sum(b_sums, axis=1) * factor[None, :]
        own = (s[:, None] < S) & inside_d[None, :]
        tl.store(grad_b + s[:, None] * D + d[None, :], result, mask=own)
    tl.store(g_r + d, tl.sum(v_sums, axis=0), mask=inside_d)


@triton.jit
def _scale(x, FORM: tl.constexpr):
    return x if FORM == WIDE else _exp2(x)


@triton.jit
def gradients(
    a,  # [N, T, D]
    b,  # [N, S, D]
    v,  # [H, D]
    maxima,  # [2]
    g,  # [N, T, S], gradient of the scores
    grad_a,  # [parts, N, T, D], zeros; receives sums that are not multiplied by 4 v
    grad_b,  # [N, S, D]
    g_r,  # [parts, N, D], sums of g * r over pairs, for the gradient of v
    N,
    T,
    S,
    D,
    H,
    keys,  # number of keys of a part, divisible by SB
    offset,
    CAUSAL: tl.constexpr,
    TB: tl.constexpr,
    SB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute the gradients of a part of the keys and a block of d; grid (N, D blocks, parts)."""
    n = tl.program_id(0).to(tl.int64)
    part = tl.program_id(2)
    d = tl.program_id(1) * DB + tl.arange(0, DB)
    begin = part * keys
    end = tl.minimum(S, begin + keys)
    a, b, v, g = a + n * T * D, b + n * S * D, v + n % H * D, g + n * T * S
    grad_a, grad_b, g_r = (
        grad_a + (part * N + n) * T * D,
        grad_b + n * S * D,
        g_r + (part * N + n) * D,
    )
    if tl.minimum(tl.load(maxima), tl.load(maxima + 1)) <= SATURATED:
        _gradients(a, b, v, g, grad_a, grad_b, g_r, T, S, D, begin, end, d, offset, SINGLE,
                   CAUSAL, TB, SB, DB)  # fmt: skip
    else:
        _gradients(a, b, v, g, grad_a, grad_b, g_r, T, S, D, begin, end, d, offset, WIDE,
                   CAUSAL, TB, SB, DB)  # fmt: skip
