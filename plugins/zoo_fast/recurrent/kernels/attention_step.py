"""Triton kernels of one attention step of all items, and of its gradient.

Notation: B batch, T steps, S source positions, D width of the queries. Names such as ``q_b`` are
strides. A score is v . tanh(q + k), or q . k if not ADDITIVE.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.recurrent.kernels.product import add_parts

LOWEST = tl.constexpr(-1e30)


@triton.jit
def tanh(x):
    return 1.0 - 2.0 / (1.0 + tl.exp(2.0 * x))


@triton.jit
def load(pointers, mask):
    return tl.load(pointers, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def scores(
    q,  # [B, D]; if there are PARTS, the sum of bias and partials is used instead
    bias,  # [N]
    partials,  # [PARTS, B, N]
    keys,  # [B, S, D]
    v,  # [D]
    mask,  # [B, S]
    output,  # [B, S]
    q_b,
    N,
    S,
    D,
    PARTS: tl.constexpr,
    ADDITIVE: tl.constexpr,
    SB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute the scores of a block of positions, LOWEST where masked; grid (B, S blocks)."""
    b = tl.program_id(0).to(tl.int64)
    s = tl.program_id(1) * SB + tl.arange(0, SB)
    sums = tl.zeros((SB, DB), tl.float32)
    for first in range(0, D, DB):
        d = first + tl.arange(0, DB)
        inside = (s[:, None] < S) & (d[None, :] < D)
        key = load(keys + (b * S + s[:, None]) * D + d[None, :], inside)
        if PARTS > 0:
            start = load(bias + d, d < D)
            row = add_parts(start, partials, b, tl.num_programs(0), N, d, d < D, PARTS)
        else:
            row = load(q + b * q_b + d, d < D)
        query = row[None, :]
        if ADDITIVE:
            sums += load(v + d, d < D)[None, :] * tanh(query + key)
        else:
            sums += query * key
    valid = tl.load(mask + b * S + s, mask=s < S, other=0) != 0
    tl.store(output + b * S + s, tl.where(valid, tl.sum(sums, axis=1), LOWEST), mask=s < S)


@triton.jit
def query_gradient(
    q,  # [B, D]
    keys,  # [B, S, D]
    v,  # [D]
    weights,  # [B, S]
    d_weights,  # [B, S], gradient of the weights
    grad_weights,  # [B, S], a second part of the gradient of the weights
    ds,  # [B, S], receives the gradient of the scores
    dq,  # [B, D]
    q_b,
    w_b,
    g_b,
    ds_b,
    dq_b,
    S,
    D,
    ADDITIVE: tl.constexpr,
    SP: tl.constexpr,  # power of two, at least S
    SB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute a block of the gradient of the queries; grid (B, D blocks)."""
    b = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * DB + tl.arange(0, DB)
    every = tl.arange(0, SP)
    all_weights = load(weights + b * w_b + every, every < S)
    all_grads = load(d_weights + b * S + every, every < S)
    all_grads += load(grad_weights + b * g_b + every, every < S)
    mean = tl.sum(all_weights * all_grads, axis=0)
    if tl.program_id(1) == 0:
        tl.store(ds + b * ds_b + every, all_weights * (all_grads - mean), mask=every < S)
    query = load(q + b * q_b + d, d < D)[None, :]
    sums = tl.zeros((SB, DB), tl.float32)
    for first in range(0, S, SB):
        s = first + tl.arange(0, SB)
        weight = load(weights + b * w_b + s, s < S)
        grad = load(d_weights + b * S + s, s < S) + load(grad_weights + b * g_b + s, s < S)
        score_grad = (weight * (grad - mean))[:, None]
        inside = (s[:, None] < S) & (d[None, :] < D)
        key = load(keys + (b * S + s[:, None]) * D + d[None, :], inside)
        if ADDITIVE:
            y = tanh(query + key)
            sums += score_grad * (1.0 - y * y)
        else:
            sums += score_grad * key
    result = tl.sum(sums, axis=0)
    if ADDITIVE:
        result *= load(v + d, d < D)
    tl.store(dq + b * dq_b + d, result, mask=d < D)


@triton.jit
def additive_gradients(
    q,  # [B, T, D]
    keys,  # [B, S, D]
    v,  # [D]
    ds,  # [B, T, S], gradient of the scores
    grad_keys,  # [B, S, D]
    grad_v,  # [B, S blocks, D]
    q_b,
    q_t,
    T,
    S,
    D,
    SB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute the gradients of additive scores of all steps; grid (B, S blocks, D blocks)."""
    b = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    s = block * SB + tl.arange(0, SB)
    d = tl.program_id(2) * DB + tl.arange(0, DB)
    inside = (s[:, None] < S) & (d[None, :] < D)
    key = load(keys + (b * S + s[:, None]) * D + d[None, :], inside)
    key_sums = tl.zeros((SB, DB), tl.float32)
    v_sums = tl.zeros((SB, DB), tl.float32)
    for t in range(T):
        query = load(q + b * q_b + t * q_t + d, d < D)[None, :]
        grad = load(ds + (b * T + t) * S + s, s < S)[:, None]
        y = tanh(query + key)
        key_sums += grad * (1.0 - y * y)
        v_sums += grad * y
    key_sums *= load(v + d, d < D)[None, :]
    tl.store(grad_keys + (b * S + s[:, None]) * D + d[None, :], key_sums, mask=inside)
    row = b * tl.num_programs(1) + block
    tl.store(grad_v + row * D + d, tl.sum(v_sums, axis=0), mask=d < D)
