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


@triton.jit(do_not_specialize=["size_a", "size_b", "blocks_a"])
def exponentials(
    a, b, exp_a, exp_b, maxima, size_a, size_b, blocks_a, BLOCK: tl.constexpr
):  # fmt: skip
    """Compute e^{2a}, e^{2b} and their largest absolute values; grid (blocks of a and b,)."""
    block = tl.program_id(0)
    if block < blocks_a:
        _exponentials(a, exp_a, maxima, size_a, block, BLOCK)
    else:
        _exponentials(b, exp_b, maxima + 1, size_b, block - blocks_a, BLOCK)


@triton.jit
def _exponentials(x, output, maximum, size, block, BLOCK: tl.constexpr):
    index = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
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
    return 1.0 + tl.exp2(x + y) if FORM == WIDE else 1.0 + x * y


@triton.jit
def _scores(
    a, b, v, rows, columns, T, S, D, FORM: tl.constexpr,
    TB: tl.constexpr, SB: tl.constexpr, DB: tl.constexpr,
):  # fmt: skip
    """Compute the scores [TB, SB] from two blocks of d in each iteration.

    The blocks of the next iteration are loaded before the current ones are used.
    """
    sums = tl.zeros((TB, SB, DB), tl.float32)
    v_sums = tl.zeros((DB,), tl.float32)
    rows, columns = rows[:, None, None], columns[None, :, None]
    d = tl.arange(0, DB)
    next_w, next_x, next_y = _load_terms(a, b, v, rows, columns, d, T, S, D, FORM)
    next_u, next_i, next_j = _load_terms(a, b, v, rows, columns, d + DB, T, S, D, FORM)
    for _ in range(0, D, 2 * DB):
        w, x, y, u, i, j = next_w, next_x, next_y, next_u, next_i, next_j
        d += 2 * DB
        next_w, next_x, next_y = _load_terms(a, b, v, rows, columns, d, T, S, D, FORM)
        next_u, next_i, next_j = _load_terms(a, b, v, rows, columns, d + DB, T, S, D, FORM)
        v_sums += w + u
        w, u = w[None, None, :], u[None, None, :]
        p, q = _one_plus(x, y, FORM), _one_plus(i, j, FORM)
        if FORM == PAIRED:
            sums += (w * q + u * p) * reciprocal(p * q)
        else:
            sums += w * reciprocal(p) + u * reciprocal(q)
    return tl.sum(v_sums, axis=0) - 2.0 * tl.sum(sums, axis=2)


@triton.jit
def _load_terms(a, b, v, rows, columns, d, T, S, D, FORM: tl.constexpr):
    weight = tl.load(v + d, mask=d < D, other=0.0).to(tl.float32)
    d = d[None, None, :]
    return weight, _load(a, rows, d, T, D, FORM), _load(b, columns, d, S, D, FORM)


@triton.jit(do_not_specialize=["T", "H", "offset"])
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
def _load_queries(a, g, grad_a, low, first_t, s, d, T, S, D, summed):
    """Load a [1, TB, DB], g [SB, TB, 1] and the sums [TB, DB] of earlier keys, if there are."""
    t = first_t[None, :, None]
    x = _load(a, t, d[None, None, :], T, D, WIDE)
    inside = (t < T) & (s[:, None, None] < S)
    weight = tl.load(g + t * S + s[:, None, None], mask=inside, other=0.0).to(tl.float32)
    t = first_t[:, None]
    own = (t < summed) & (d[None, :] < D)
    sums = tl.load(grad_a + t * D + d[None, :], mask=own, other=0.0).to(tl.float32)
    if low is not None:
        sums += tl.load(low + t * D + d[None, :], mask=own, other=0.0).to(tl.float32)
    return x, weight, sums


@triton.jit
def _gradients(
    a, b, v, g, grad_a, low, grad_b, grad_v, T, S, D, begin, end, d, offset,
    FORM: tl.constexpr, CAUSAL: tl.constexpr, TB: tl.constexpr, SB: tl.constexpr,
    DB: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of a from keys from begin to end, of these keys, and of v.

    In tiles [SB, TB, DB] with TB warps, a thread has all keys of a query and a unit, so that sums
    over keys need no communication in the inner loop, and sums over queries only after it. Sums
    for the gradient of a are added in ``grad_a``, by the thread that has written them before; in
    half precision, ``low`` is what rounding has removed.
    """
    inside_d = d < D
    v_sums = tl.zeros((TB, DB), tl.float32)
    factor = 4.0 * tl.load(v + d, mask=inside_d, other=0.0).to(tl.float32)
    queries = tl.arange(0, TB)
    for first_s in range(begin, end, SB):
        s = first_s + tl.arange(0, SB)
        summed = tl.where(first_s > begin, T, 0)  # number of queries with sums of earlier keys
        added = tl.where(first_s + SB < end, T, 0)  # number of queries whose sums are not complete
        y = _scale(_load(b, s[:, None, None], d[None, None, :], S, D, WIDE), FORM)  # [SB, 1, DB]
        b_sums = tl.zeros((SB, TB, DB), tl.float32)
        first_t = 0
        if CAUSAL:  # skip queries that attend to none of the keys, but write all results
            first_t = tl.maximum(0, first_s - offset) // TB * TB
            first_t = tl.where((summed == 0) | (added == 0), 0, first_t)
        t = first_t + queries
        next_x, next_g, next_sum = _load_queries(a, g, grad_a, low, t, s, d, T, S, D, summed)
        for _ in range(first_t, T, TB):
            x, weight, previous = _scale(next_x, FORM), next_g, next_sum
            rows = t[:, None]
            place = rows * D + d[None, :]
            t += TB
            next_x, next_g, next_sum = _load_queries(a, g, grad_a, low, t, s, d, T, S, D, summed)
            r = reciprocal(_one_plus(x, y, FORM))
            product = weight * (r - r * r)
            b_sums += product
            v_sums += tl.sum(weight * r, axis=0)
            previous += tl.sum(product, axis=0)
            previous *= tl.where(added == 0, factor[None, :], 1.0)
            high = previous.to(grad_a.dtype.element_ty)
            own = (rows < T) & inside_d[None, :]
            tl.store(grad_a + place, high, mask=own)
            if low is not None:
                tl.store(low + place, previous - high.to(tl.float32), mask=own)
        result = tl.sum(b_sums, axis=1) * factor[None, :]
        own = (s[:, None] < S) & inside_d[None, :]
        tl.store(grad_b + s[:, None] * D + d[None, :], result, mask=own)
        tl.debug_barrier()  # before the sums are read again
    tl.store(grad_v + d, -2.0 * tl.sum(v_sums, axis=0), mask=inside_d)


@triton.jit
def _scale(x, FORM: tl.constexpr):
    return x if FORM == WIDE else _exp2(x)


@triton.jit(do_not_specialize=["N", "T", "H", "offset"])
def gradients(
    a,  # [N, T, D]
    b,  # [N, S, D]
    v,  # [H, D]
    maxima,  # [2]
    g,  # [N, T, S], gradient of the scores
    grad_a,  # [parts, N, T, D], to be summed over the parts
    low,  # [parts, N, T, D], if grad_a is in half precision
    grad_b,  # [N, S, D]
    grad_v,  # [parts, N, D], to be summed, without the sum of g
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
    place = part * N + n
    a, b, v, g = a + n * T * D, b + n * S * D, v + n % H * D, g + n * T * S
    grad_a += place * T * D
    if low is not None:
        low += place * T * D
    grad_b, grad_v = grad_b + n * S * D, grad_v + place * D
    if tl.minimum(tl.load(maxima), tl.load(maxima + 1)) <= SATURATED:
        _gradients(a, b, v, g, grad_a, low, grad_b, grad_v, T, S, D, begin, end, d, offset,
                   SINGLE, CAUSAL, TB, SB, DB)  # fmt: skip
    else:
        _gradients(a, b, v, g, grad_a, low, grad_b, grad_v, T, S, D, begin, end, d, offset,
                   WIDE, CAUSAL, TB, SB, DB)  # fmt: skip
