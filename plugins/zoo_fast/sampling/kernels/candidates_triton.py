"""Triton kernels that read the logits once: log-sum-exp and best tokens of each row.

Notation: R rows, V vocabulary, C chunks of a row, n best tokens of a chunk.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.sampling.kernels.ranks_triton import (
    TAKEN,
    TAKEN_SHORT,
    place_of,
    rank,
    short_place_of,
    short_rank,
    short_value_of,
    value_of,
)


@triton.jit
def best_of_chunks(
    logits,  # [R, V]
    values,  # [R, C, n], output
    tokens,  # [R, C, n], output
    highest,  # [R, C], output: maximum
    total,  # [R, C], output: sum of exp(x - maximum)
    V,
    logits_r,
    excluded,  # a token that is not returned, or -1
    COUNT: tl.constexpr,
    BLOCK: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute the maximum, the sum of exponentials and the n largest logits of a chunk."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    DTYPE: tl.constexpr = logits.dtype.element_ty
    IS_SHORT: tl.constexpr = DTYPE.primitive_bitwidth == 16
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    v = chunk * BLOCK + tl.arange(0, BLOCK)
    loaded = tl.load(logits + row * logits_r + v, mask=v < V, other=float("-inf"))
    x = loaded.to(tl.float32)
    maximum = tl.max(x, 0)
    # NaN and inf make the sum NaN.
    shift = tl.where(maximum == float("-inf"), 0.0, maximum)
    at = row * tl.num_programs(1) + chunk
    tl.store(highest + at, maximum)
    tl.store(total + at, tl.sum(tl.exp(x - shift), 0))
    place = tl.arange(0, BLOCK)
    if IS_SHORT:
        ranks = short_rank(loaded, place)
        never = short_rank(tl.full([BLOCK], float("-inf"), tl.float32).to(DTYPE), place)
        ranks = tl.where(v == excluded, never, ranks)
    else:
        ranks = rank(tl.where(v == excluded, float("-inf"), x), place)
    for i in tl.static_range(COUNT):
        best = tl.max(ranks, 0)
        if IS_SHORT:
            value, index = short_value_of(best, DTYPE), short_place_of(best)
            ranks = tl.where(ranks == best, TAKEN_SHORT, ranks)
        else:
            value, index = value_of(best), place_of(best)
            ranks = tl.where(ranks == best, TAKEN, ranks)
        tl.store(values + at * COUNT + i, value)
        token = tl.minimum(chunk * BLOCK + index, V - 1)  # with NaN or few tokens any place
        tl.store(tokens + at * COUNT + i, token.to(tl.int64))


@triton.jit
def select_best(
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
    C,
    pad,
    BLOCK: tl.constexpr,
    PDL: tl.constexpr,
):
    """Select the best token of a row, or padding for a finished one, and update its score."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    at = row * C + c
    value = tl.load(values + at, mask=c < C, other=float("-inf"))
    maxima = tl.load(highest + at, mask=c < C, other=float("-inf"))
    sums = tl.load(total + at, mask=c < C, other=0.0)
    maximum = tl.max(maxima, 0)
    shift = tl.where(maximum == float("-inf"), 0.0, maximum)
    # A sum that is NaN makes the log-sum-exp NaN.
    logsumexp = tl.log(tl.sum(sums * tl.exp(maxima - shift), 0)) + maximum
    best, index = tl.max(value, 0, return_indices=True)
    token = tl.load(tokens + row * C + tl.minimum(index, C - 1))  # NaN, as in `best_of_chunks`
    done = tl.load(finished + row) != 0
    gain = tl.where(best == float("-inf"), float("-inf"), best - logsumexp)
    tl.store(selected + row, tl.where(done, pad, token))
    tl.store(parents + row, 0)
    tl.store(new_scores + row, tl.load(scores + row) + tl.where(done, 0.0, gain))
    tl.store(invalid + row, ((logsumexp < float("inf")) == 0).to(tl.int8))
