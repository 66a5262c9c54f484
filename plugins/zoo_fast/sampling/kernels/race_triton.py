"""Triton kernels that sample a token of each row, as `zoo.interfaces.sampler` does on a GPU.

The token is the one of the largest weight / noise, where the weight is exp((x - max) / T), or 0 for
a token that the sampler removes, and the noise is exponential. Weights need not be normalised.

Notation: R rows, V vocabulary, C chunks of a row.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.sampling.kernels.threshold_triton import (
    DIGITS,
    combine_pass,
    load_logits,
    ordered_keys,
    row_maximum,
    row_total,
)

ALL = tl.constexpr(0)
WEIGHT = tl.constexpr(1)
COUNT = tl.constexpr(2)
MASS = tl.constexpr(3)
TINY = tl.constexpr(1.1754943508222875e-38)


@triton.jit
def race_in_chunks(
    logits,  # [R, V]
    noise,  # [R, V]
    highest,  # [R, C]
    start,  # [R], the first key of the last pass of `sum_above`
    first_sums,  # [R, C, DIGITS], of the first pass
    sums,  # [R, C, DIGITS], of the last pass
    equals,  # [R, C, DIGITS]
    values,  # [R, C], output: the largest weight / noise, -inf without a token
    tokens,  # [R, C], output
    V,
    logits_r,
    excluded,
    sharpness,
    bound,
    bound_rest,
    RULE: tl.constexpr,
    SHIFT: tl.constexpr,
    BLOCK: tl.constexpr,
    BC: tl.constexpr,
    PDL: tl.constexpr,
):
    """Sample a token of a chunk from those that the rule keeps.

    A rule keeps ALL tokens, those with at least a WEIGHT relative to the largest one, or those from
    a threshold on, found by the COUNT or the MASS of the tokens above it. By their count, all
    tokens equal to the threshold are kept. By their mass, a token is kept if the mass of larger
    ones, and of equal ones with a larger ID, is less than the target.
    """
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row, chunk, C = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    v = chunk * BLOCK + tl.arange(0, BLOCK)
    x = load_logits(logits + row * logits_r, v, V, excluded)
    divisor = tl.load(noise + row * V + v, mask=v < V, other=1.0)
    weights = tl.exp((x - row_maximum(highest, row, C, BC)) * sharpness)
    kept = weights > 0.0
    if RULE == WEIGHT:
        kept = kept & (weights >= bound)
    elif RULE >= COUNT:
        target = tl.zeros([], tl.float64) + bound + bound_rest
        if RULE == MASS:
            target *= row_total(first_sums, row, C, BC)
        digit, above = combine_pass(sums, row, C, target, BC)
        threshold = (tl.load(start + row) + digit).to(tl.uint32)
        keys = ordered_keys(x) >> SHIFT
        if RULE == COUNT:
            kept = kept & (keys >= threshold)
        else:
            is_equal = kept & (keys == threshold)
            kept = kept & (keys > threshold)
            count = tl.sum(is_equal.to(tl.int32), 0)
            if count > 0:
                c = tl.arange(0, BC)
                later = (c > chunk) & (c < C)
                counts = tl.load(equals + (row * C + c) * DIGITS + digit, mask=later, other=0)
                num_later = tl.sum(counts, 0)
                weight = tl.max(tl.where(is_equal, weights, 0.0), 0).to(tl.float64)
                left = target - above
                larger_ids = num_later + count - tl.cumsum(is_equal.to(tl.int32), 0)
                kept = kept | (is_equal & (larger_ids.to(tl.float64) * weight < left))
    value = tl.where(kept, weights / tl.maximum(divisor, TINY), float("-inf"))
    best, index = tl.max(value, 0, return_indices=True)
    at = row * C + chunk
    tl.store(values + at, best)
    tl.store(tokens + at, (chunk * BLOCK + index).to(tl.int64))


@triton.jit
def select_winner(
    logits,  # [R, V]
    values,  # [R, C]
    tokens,  # [R, C]
    highest,  # [R, C]
    total,  # [R, C]
    finished,  # [R]
    scores,  # [R]
    selected,  # [R], output
    parents,  # [R], output: 0
    new_scores,  # [R], output
    invalid,  # [R], output
    logits_r,
    C,
    excluded,
    pad,
    BC: tl.constexpr,
    PDL: tl.constexpr,
):
    """Select the winner of a row, or padding for a finished one, and update its score.

    A row without a possible token gives token 0 of score -inf, as the argmax of NaN.
    """
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BC)
    value = tl.load(values + row * C + c, mask=c < C, other=float("-inf"))
    maxima = tl.load(highest + row * C + c, mask=c < C, other=float("-inf"))
    sums = tl.load(total + row * C + c, mask=c < C, other=0.0)
    hidden = tl.load(logits + row * logits_r + excluded, mask=excluded >= 0, other=float("-inf"))
    hidden = hidden.to(tl.float32)  # the excluded token is part of the softmax
    maximum = tl.maximum(tl.max(maxima, 0), hidden)
    shift = tl.where(maximum == float("-inf"), 0.0, maximum)
    # A sum that is NaN makes the log-sum-exp NaN.
    normaliser = tl.sum(sums * tl.exp(maxima - shift), 0) + tl.exp(hidden - shift)
    logsumexp = tl.log(normaliser) + maximum
    is_valid = logsumexp < float("inf")
    best, index = tl.max(value, 0, return_indices=True)
    possible = is_valid & (best > float("-inf"))
    token = tl.load(tokens + row * C + index, mask=possible, other=0)
    logit = tl.load(logits + row * logits_r + token, mask=possible, other=0.0).to(tl.float32)
    gain = tl.where(possible, logit - logsumexp, float("-inf"))
    done = tl.load(finished + row) != 0
    tl.store(selected + row, tl.where(done, pad, token))
    tl.store(parents + row, 0)
    tl.store(new_scores + row, tl.load(scores + row) + tl.where(done, 0.0, gain))
    tl.store(invalid + row, (is_valid == 0).to(tl.int8))
