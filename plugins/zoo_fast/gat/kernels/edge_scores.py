"""Functions of the Triton kernels over edges: scores and dropout."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.gat.kernels import score_kinds

NEG = tl.constexpr(-1e30)
NO_EDGES = tl.constexpr(1e30)  # logarithm of the sum of exponentials that gives weights of 0
GAT = tl.constexpr(score_kinds.GAT)
GATV2 = tl.constexpr(score_kinds.GATV2)
DOT = tl.constexpr(score_kinds.DOT)


@triton.jit
def leaky_relu(x, slope):
    return tl.where(x >= 0, x, x * slope)


@triton.jit
def log_sum(largest, total):
    """Return the logarithm of a sum of exponentials, NO_EDGES if it is 0."""
    return tl.where(total > 0, largest + tl.log(tl.where(total > 0, total, 1.0)), NO_EDGES)


@triton.jit
def pair_scores(query, keys, a, factor, SCORE: tl.constexpr):
    """Score pairs: query, keys [EB, HB, DB], a [1, HB, DB] -> [EB, HB]."""
    if SCORE == GATV2:
        return tl.sum(leaky_relu(query + keys, factor) * a, axis=2)
    return tl.sum(query * keys, axis=2) * factor


@triton.jit
def keep_factor(seed, ids, h, H, dropout_p):
    """Return the factor of each weight, 0 or 1 / (1 - p), from the ids of the edges."""
    random = tl.rand(tl.load(seed), ids * H + h)
    return tl.where(random >= dropout_p, 1.0 / (1.0 - dropout_p), 0.0)


@triton.jit
def dropout_factors(
    seed,  # []
    factors,  # [M, H]
    size,
    dropout_p,
    B: tl.constexpr,
):
    """Compute the dropout factor of each weight; grid (blocks,)."""
    index = tl.program_id(0) * B + tl.arange(0, B)
    values = keep_factor(seed, index, 0, 1, dropout_p)
    tl.store(factors + index, values, mask=index < size)
