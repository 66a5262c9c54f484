"""Triton kernels that find the least logit that top-k or top-p sampling keeps, without a sort.

The bits of a float, as `ordered_keys` maps them, are an integer with the order of the floats. The
key of the threshold is found four bits at a time, from the highest ones, as digits of base 16. A
pass sums, for each of the 16 values of the next digit, the weights of the tokens with a larger key:
their number for top-k, their probability for top-p. The digit is then the number of sums that still
reach the target (k, or p of the total). A bfloat16 has 16 bits, which takes 4 passes; a float32
takes 8.

A row is divided into chunks, a program each. Each program of a pass first adds the sums of all
chunks of its row in the pass before, in the same order, so the result does not depend on the order
in which programs run. Groups of GROUP tokens are summed in float32, groups in float64. The error is
far below that of the reference, whose cumulative sums are float32: the kept tokens differ only if
the probability of those above a token is p up to rounding.

Notation: R rows, V vocabulary, C chunks of a row.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

DIGITS = tl.constexpr(16)
"""Number of values of a digit."""
GROUP = tl.constexpr(16)
"""Number of tokens summed in float32."""


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
def row_maximum(highest, row, C, BC: tl.constexpr):
    """Return the maximum of a row, 0 instead of -inf."""
    c = tl.arange(0, BC)
    maximum = tl.max(tl.load(highest + row * C + c, mask=c < C, other=float("-inf")), 0)
    return tl.where(maximum == float("-inf"), 0.0, maximum)


@triton.jit
def row_total(sums, row, C, BC: tl.constexpr):
    """Return the sum of the weights of a row, given the sums of the first pass."""
    c = tl.arange(0, BC)
    at = (row * C + c) * DIGITS + DIGITS - 1
    return tl.sum(tl.load(sums + at, mask=c < C, other=0.0), 0)


@triton.jit
def combine_pass(sums, row, C, target, BC: tl.constexpr):
    """Return the digit that a pass found, and the sum of the weights of larger keys."""
    c, digits = tl.arange(0, BC), tl.arange(0, DIGITS)
    at = (row * C + c)[:, None] * DIGITS + digits[None, :]
    each = tl.load(sums + at, mask=(c < C)[:, None], other=0.0)
    above = tl.sum(each, 0)  # [DIGITS]
    reached = (above >= target) & (digits < DIGITS - 1)
    digit = tl.sum(reached.to(tl.int32), 0)
    return digit, tl.sum(tl.where(digits == digit, above, 0.0), 0)


@triton.jit
def summarise_chunks(
    logits,  # [R, V]
    highest,  # [R, C], output: maximum
    total,  # [R, C], output: sum of exp(x - maximum)
    V,
    logits_r,
    excluded,
    BLOCK: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute the maximum and the sum of exponentials of a chunk, without the excluded token."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    v = chunk * BLOCK + tl.arange(0, BLOCK)
    x = load_logits(logits + row * logits_r, v, V, excluded)
    maximum = tl.max(x, 0)
    # NaN and inf make the sum NaN.
    shift = tl.where(maximum == float("-inf"), 0.0, maximum)
    at = row * tl.num_programs(1) + chunk
    tl.store(highest + at, maximum)
    tl.store(total + at, tl.sum(tl.exp(x - shift), 0))


@triton.jit
def sum_above(
    logits,  # [R, V]
    highest,  # [R, C]
    starts,  # [passes, R], updated: the first key of each pass
    sums,  # [passes, R, C, DIGITS], updated: weights of the keys above those of each digit; no key
    # is above those of the last digit of the first pass, which has the weights of all keys
    equals,  # [R, C, DIGITS], output if TIES: number of tokens of each digit
    V,
    logits_r,
    excluded,
    sharpness,  # 1 / T
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
    group, within = tl.arange(0, GROUP), tl.arange(0, BLOCK // GROUP)
    v = chunk * BLOCK + group[:, None] * (BLOCK // GROUP) + within[None, :]
    x = load_logits(logits + row * logits_r, v, V, excluded)
    target = tl.zeros([], tl.float64) + bound + bound_rest
    if COUNT:
        weights = (x > float("-inf")).to(tl.float32)
    else:
        weights = tl.exp((x - row_maximum(highest, row, C, BC)) * sharpness)
        if PASS > 0:
            target *= row_total(sums, row, C, BC)
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
    is_above = keys[:, :, None] > each[None, None, :]  # [GROUP, BLOCK / GROUP, DIGITS]
    if PASS == 0:
        is_above = is_above | (digits == DIGITS - 1)[None, None, :]
    of_groups = tl.sum(tl.where(is_above, weights[:, :, None], 0.0), 0)
    at = (row * C + chunk) * DIGITS + digits
    tl.store(sums + PASS * R * C * DIGITS + at, tl.sum(of_groups.to(tl.float64), 0))
    if TIES:
        is_equal = keys[:, :, None] == each[None, None, :]
        tl.store(equals + at, tl.sum(tl.sum(is_equal.to(tl.int32), 0), 0))
