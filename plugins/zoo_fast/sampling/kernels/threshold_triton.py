"""Triton kernels that find the least logit that top-k or top-p sampling keeps, without a sort.

The bits of a float, as `ordered_keys` maps them, are an integer with the order of the floats. The
key of the threshold is found four bits at a time, from the highest ones, as digits of base 16. A
pass sums, for each of the 16 values of the next digit, the weights of the tokens with a larger key:
their number for top-k, their probability for top-p. The digit is then the number of sums that still
reach the target (k, or p of the total). A bfloat16 has 16 bits, which takes 4 passes; a float32
takes 8.

A row is divided into chunks, a program each. A chunk is summed in float32, and each program of the
next pass adds the sums of all chunks of its row in float64, in the same order, so the result does
not depend on the order in which programs run. Its error is far below that of the cumulative sums
of the reference, in float32; the kept tokens differ only if a total is p up to rounding.

Notation: R rows, V vocabulary, C chunks of a row.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

DIGITS = tl.constexpr(16)
"""Number of values of a digit."""


@triton.jit
def load_logits(logits, v, V, excluded):
    """Return logits of a row as float32; -inf for the excluded token and those after the last."""
    x = tl.load(logits + v, mask=v < V, other=float("-inf")).to(tl.float32)
    return tl.where(v == excluded, float("-inf"), x)


@triton.jit
def ordered_keys(x):
    """Return integers with the order of x, in which 0 and -0 are equal."""
    bits = tl.where(x == 0.0, 0.0, x).to(tl.uint32, bitcast=True)
    return tl.where((bits >> 31) != 0, bits ^ 0xFFFFFFFF, bits | 0x80000000)


@triton.jit
def combine_chunks(highest, total, row, C, sharpness, BC: tl.constexpr):
    """Return the maximum of a row, 0 instead of -inf, and its sum of exp((x - max) / T)."""
    c = tl.arange(0, BC)
    maxima = tl.load(highest + row * C + c, mask=c < C, other=float("-inf"))
    sums = tl.load(total + row * C + c, mask=c < C, other=0.0)
    maximum = tl.max(maxima, 0)
    maximum = tl.where(maximum == float("-inf"), 0.0, maximum)
    factors = tl.exp((maxima - maximum) * sharpness)
    return maximum, tl.sum(sums.to(tl.float64) * factors.to(tl.float64), 0)


@triton.jit
def combine_pass(sums, row, C, target, BC: tl.constexpr):
    """Return the digit that a pass found, and the sum of the weights of larger keys."""
    c, digits = tl.arange(0, BC), tl.arange(0, DIGITS)
    at = (row * C + c)[:, None] * DIGITS + digits[None, :]
    each = tl.load(sums + at, mask=(c < C)[:, None], other=0.0)
    above = tl.sum(each.to(tl.float64), 0)  # [DIGITS]
    reached = (above >= target) & (digits < DIGITS - 1)
    digit = tl.sum(reached.to(tl.int32), 0)
    return digit, tl.sum(tl.where(digits == digit, above, 0.0), 0)


@triton.jit
def summarise_chunks(
    logits,  # [R, V]
    highest,  # [R, C], output: maximum
    total,  # [R, C], output: sum of exp(x - maximum)
    tempered_total,  # [R, C], output: sum of exp((x - maximum) / T)
    V,
    logits_r,
    excluded,
    sharpness,  # 1 / T
    BLOCK: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute the maximum and the sums of exponentials of a chunk, without the excluded token."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    v = chunk * BLOCK + tl.arange(0, BLOCK)
    x = load_logits(logits + row * logits_r, v, V, excluded)
    maximum = tl.max(x, 0)
    # NaN and inf make the sums NaN.
    shifted = x - tl.where(maximum == float("-inf"), 0.0, maximum)
    at = row * tl.num_programs(1) + chunk
    tl.store(highest + at, maximum)
    tl.store(total + at, tl.sum(tl.exp(shifted), 0))
    tl.store(tempered_total + at, tl.sum(tl.exp(shifted * sharpness), 0))


@triton.jit
def sum_above(
    logits,  # [R, V]
    highest,  # [R, C]
    total,  # [R, C], with the temperature
    starts,  # [passes, R], updated: the first key of each pass
    sums,  # [passes, R, C, DIGITS], updated: weights of the keys above those of each digit
    equals,  # [R, C, DIGITS], output if TIES: number of tokens of each digit
    V,
    logits_r,
    excluded,
    sharpness,
    bound,  # the target is bound + bound_rest, of the total unless COUNT
    bound_rest,
    PASS: tl.constexpr,
    SHIFT: tl.constexpr,
    COUNT: tl.constexpr,
    TIES: tl.constexpr,
    BLOCK: tl.constexpr,
    BC: tl.constexpr,
    PDL: tl.constexpr,
):
    """Sum the weights in a chunk for one digit of the threshold, after the digits before it."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    R, C = tl.num_programs(0), tl.num_programs(1)
    v = chunk * BLOCK + tl.arange(0, BLOCK)
    x = load_logits(logits + row * logits_r, v, V, excluded)
    target = tl.zeros([], tl.float64) + bound + bound_rest
    if COUNT:
        weights = (x > float("-inf")).to(tl.float32)
    else:
        maximum, mass = combine_chunks(highest, total, row, C, sharpness, BC)
        weights = tl.exp((x - maximum) * sharpness)
        target *= mass
    start = tl.zeros([], tl.uint32)
    if PASS > 0:
        digit, _ = combine_pass(sums + (PASS - 1) * R * C * DIGITS, row, C, target, BC)
        before = tl.load(starts + (PASS - 1) * R + row)
        start = ((before + digit) * DIGITS).to(tl.uint32)
    if chunk == 0:
        tl.store(starts + PASS * R + row, start.to(tl.int64))
    keys = ordered_keys(x) >> SHIFT
    digits = tl.arange(0, DIGITS)
    each = start + digits.to(tl.uint32)
    above = keys[:, None] > each[None, :]
    at = (row * C + chunk) * DIGITS + digits
    part = tl.sum(tl.where(above, weights[:, None], 0.0), 0)
    tl.store(sums + PASS * R * C * DIGITS + at, part)
    if TIES:
        is_equal = keys[:, None] == each[None, :]
        tl.store(equals + at, tl.sum(is_equal.to(tl.int32), 0))
