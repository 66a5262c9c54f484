"""Triton kernels of the softmax of scores with mask, bias and dropout.

Notation: B batch, H heads, N = B * H, T queries, S keys, D hidden width. The T queries are a slice
of all: `first` is the index of the first one, and `queries` the number of all.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.attention.kernels.additive_tiles import TWO_LOG2_E, reciprocal

LOG2_E = tl.constexpr(1.4426950408889634)
MASKED = tl.constexpr(float("-inf"))
SLICE = ["T", "H", "first", "queries", "offset", "mask_n", "mask_t", "bias_n", "bias_t"]


@triton.jit
def _masked(
    e, mask, bias, s, S, last, CAUSAL: tl.constexpr
):  # fmt: skip
    """Add the bias to scores of keys s, and set those of masked keys to -inf."""
    if bias is not None:
        e += tl.load(bias + s, mask=s < S, other=0.0).to(tl.float32)
    valid = s < S
    if CAUSAL:
        valid = valid & (s <= last)
    if mask is not None:
        valid = valid & (tl.load(mask + s, mask=s < S, other=0) != 0)
    return tl.where(valid, e, MASKED)


@triton.jit
def _drop(weight, seed, row, s, dropout_p):
    """Set weights to 0 with probability p, and divide the others by 1 - p."""
    if seed is not None:
        random = tl.rand(tl.load(seed) + row, s)
        weight = tl.where(random >= dropout_p, weight / (1.0 - dropout_p), 0.0)
    return weight


@triton.jit(do_not_specialize=SLICE)
def weights(
    scores,  # [N, T, S]
    mask,  # [B or 1, queries or 1, S]
    bias,  # [H or 1, queries, S]
    seed,  # []
    output,  # [N, T, S], weights
    dropped,  # [N, T, S], weights after dropout, if there is a seed
    T,
    S,
    H,
    first,
    queries,
    offset,
    mask_n,
    mask_t,
    bias_n,
    bias_t,
    dropout_p,
    CAUSAL: tl.constexpr,
    SB: tl.constexpr,
):
    """Compute the weights of a query, zeros if all keys are masked; grid (N * T,)."""
    row = tl.program_id(0).to(tl.int64)
    n, t = row // T, first + row % T
    scores, output = scores + row * S, output + row * S
    if mask is not None:
        mask += n // H * mask_n + t * mask_t
    if bias is not None:
        bias += n % H * bias_n + t * bias_t
    total, largest = tl.zeros((), tl.float32), tl.full((), MASKED, tl.float32)
    for start in range(0, S, SB):
        s = start + tl.arange(0, SB)
        e = tl.load(scores + s, mask=s < S, other=0.0)
        e = _masked(e, mask, bias, s, S, t + offset, CAUSAL) * LOG2_E
        highest = tl.maximum(largest, tl.max(e, axis=0))
        shift = _finite(highest)
        total = total * tl.exp2(largest - shift) + tl.sum(tl.exp2(e - shift), axis=0)
        largest = highest
    factor = 1.0 / tl.where(largest == MASKED, 1.0, total)
    for start in range(0, S, SB):
        s = start + tl.arange(0, SB)
        e = tl.load(scores + s, mask=s < S, other=0.0)
        e = _masked(e, mask, bias, s, S, t + offset, CAUSAL) * LOG2_E
        weight = tl.exp2(e - _finite(largest)) * factor
        tl.store(output + s, weight, mask=s < S)
        if seed is not None:
            kept = _drop(weight, seed, n * queries + t, s, dropout_p)
            tl.store(dropped + row * S + s, kept, mask=s < S)


@triton.jit
def _finite(largest):
    """Return the largest score, or 0 if all keys are masked."""
    return tl.where(largest == MASKED, 0.0, largest)


@triton.jit(do_not_specialize=["T", "first", "queries"])
def weights_gradient(
    weights,  # [N, T, S]
    seed,  # []
    grad,  # [N, T, S], gradient of the weights; receives that of the scores
    dropped,  # [N, T, S], receives the weights after dropout, if there is a seed
    T,
    S,
    first,
    queries,
    dropout_p,
    SB: tl.constexpr,
):
    """Compute the gradient of the scores of a query; grid (N * T,).

    Weights in half precision are normalised again, so that the sum of the gradient is 0.
    """
    row = tl.program_id(0).to(tl.int64)
    n, t = row // T, first + row % T
    weights, grad = weights + row * S, grad + row * S
    mean, total = tl.zeros((), tl.float32), tl.zeros((), tl.float32)
    for start in range(0, S, SB):
        s = start + tl.arange(0, SB)
        weight = tl.load(weights + s, mask=s < S, other=0.0).to(tl.float32)
        kept = _drop(weight, seed, n * queries + t, s, dropout_p)
        total += tl.sum(weight, axis=0)
        mean += tl.sum(kept * tl.load(grad + s, mask=s < S, other=0.0).to(tl.float32), axis=0)
    mean = mean / tl.where(total == 0.0, 1.0, total)
    for start in range(0, S, SB):
        s = start + tl.arange(0, SB)
        weight = tl.load(weights + s, mask=s < S, other=0.0).to(tl.float32)
        kept = _drop(weight, seed, n * queries + t, s, dropout_p)
        change = tl.load(grad + s, mask=s < S, other=0.0).to(tl.float32)
        tl.store(grad + s, kept * change - weight * mean, mask=s < S)
        if seed is not None:
            tl.store(dropped + row * S + s, kept, mask=s < S)


@triton.jit(do_not_specialize=["H", "G", "mask_n"])
def attend_one(
    a,  # [N, D]
    b,  # [N, S, D]
    v,  # [H, D]
    values,  # [N // G, S, Dv]
    mask,  # [B or 1, 1, S]
    scores,  # [N, S]
    output,  # [N, Dv]
    S,
    D,
    Dv,
    H,
    G,  # number of heads that share values
    mask_n,
    ROW: tl.constexpr,  # at least S
    SB: tl.constexpr,
    DB: tl.constexpr,
    DVB: tl.constexpr,
):
    """Compute scores, weights and a block of the context of one query; grid (N,)."""
    n = tl.program_id(0).to(tl.int64)
    a, b, v, values = a + n * D, b + n * S * D, v + n % H * D, values + n // G * S * Dv
    scores += n * S
    if mask is not None:
        mask += n // H * mask_n
    for start in range(0, S, SB):
        s = start + tl.arange(0, SB)
        sums = tl.zeros((SB, DB), tl.float32)
        for first in range(0, D, DB):
            d = first + tl.arange(0, DB)
            x = tl.load(a + d, mask=d < D, other=0.0).to(tl.float32)
            w = tl.load(v + d, mask=d < D, other=0.0).to(tl.float32)
            inside = (s[:, None] < S) & (d[None, :] < D)
            y = tl.load(b + s[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
            r = reciprocal(1.0 + tl.exp2((x[None, :] + y) * TWO_LOG2_E))
            sums += w[None, :] * (1.0 - 2.0 * r)
        tl.store(scores + s, tl.sum(sums, axis=1), mask=s < S)
    tl.debug_barrier()  # before the scores are read
    row = tl.arange(0, ROW)
    e = tl.load(scores + row, mask=row < S, other=0.0)
    e = _masked(e, mask, None, row, S, 0, False) * LOG2_E
    largest = tl.max(e, axis=0)
    powers = tl.exp2(e - _finite(largest))
    total = tl.where(largest == MASKED, 1.0, tl.sum(powers, axis=0))
    tl.debug_barrier()  # before the scores are overwritten
    tl.store(scores + row, powers / total, mask=row < S)
    tl.debug_barrier()  # before the weights are read
    unit = tl.arange(0, DVB)
    context = tl.zeros((SB, DVB), tl.float32)
    for start in range(0, S, SB):
        s = start + tl.arange(0, SB)
        weight = tl.load(scores + s, mask=s < S, other=0.0)
        inside = (s[:, None] < S) & (unit[None, :] < Dv)
        tile = tl.load(values + s[:, None] * Dv + unit[None, :], mask=inside, other=0.0)
        context += weight[:, None] * tile.to(tl.float32)
    tl.store(output + n * Dv + unit, tl.sum(context, axis=0), mask=unit < Dv)
