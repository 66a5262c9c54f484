"""Triton kernels of softmax attention over short sequences: one program for each head.

Notation: B batch, H heads, T queries, S keys, D width of a head.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl


@triton.jit
def _tile(start, row_stride, ROWS: tl.constexpr, D: tl.constexpr, rows, width):
    """Load a tile [ROWS, D] of the rows and columns that exist, 0 elsewhere."""
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, D)[None]
    inside = (row < rows) & (column < width)
    return tl.load(start + row * row_stride + column, mask=inside, other=0.0)


@triton.jit
def _store(start, row_stride, tile, ROWS: tl.constexpr, D: tl.constexpr, rows, width):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, D)[None]
    tl.store(start + row * row_stride + column, tile, mask=(row < rows) & (column < width))


@triton.jit
def _weights(
    q, k, keys_ptr, scale, T, S,
    CAUSAL: tl.constexpr, KEYS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_S: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Return the weights [T, S]; 0 for queries without a key."""
    t, s = tl.arange(0, BLOCK_T)[:, None], tl.arange(0, BLOCK_S)[None]
    valid = (t < T) & (s < S)
    if CAUSAL:
        valid = valid & (s <= t)
    if KEYS:
        kept = tl.load(keys_ptr + tl.arange(0, BLOCK_S), mask=tl.arange(0, BLOCK_S) < S, other=0)
        valid = valid & (kept[None] != 0)
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
    scores = tl.where(valid, scores, -float("inf"))
    highest = tl.max(scores, axis=1)
    highest = tl.where(highest == -float("inf"), 0.0, highest)
    exponentials = tl.exp(scores - highest[:, None])
    total = tl.sum(exponentials, axis=1)
    return exponentials / tl.where(total == 0, 1.0, total)[:, None]


@triton.jit
def _kept(seed_ptr, p, BLOCK_T: tl.constexpr, BLOCK_S: tl.constexpr):
    """Return 1 / (1 - p) for weights [T, S] that dropout keeps, and 0 for others."""
    t, s = tl.arange(0, BLOCK_T)[:, None], tl.arange(0, BLOCK_S)[None]
    start = tl.program_id(0) * BLOCK_T * BLOCK_S
    drawn = tl.rand(tl.load(seed_ptr), start + t * BLOCK_S + s)
    return tl.where(drawn >= p, 1.0 / (1.0 - p), 0.0)


@triton.jit
def forward_heads(
    q_ptr, k_ptr, v_ptr, out_ptr, keys_ptr, seed_ptr,
    q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, o_b, o_h, o_t,
    H, T, S, D, scale, p,
    CAUSAL: tl.constexpr, KEYS: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_T: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    b, h = (tl.program_id(0) // H).to(tl.int64), (tl.program_id(0) % H).to(tl.int64)
    q = _tile(q_ptr + b * q_b + h * q_h, q_t, BLOCK_T, BLOCK_D, T, D)
    k = _tile(k_ptr + b * k_b + h * k_h, k_t, BLOCK_S, BLOCK_D, S, D)
    v = _tile(v_ptr + b * v_b + h * v_h, v_t, BLOCK_S, BLOCK_D, S, D)
    weights = _weights(
        q, k, keys_ptr + b * S, scale, T, S, CAUSAL, KEYS, BLOCK_T, BLOCK_S, PRECISION
    )
    if DROPOUT:
        weights *= _kept(seed_ptr, p, BLOCK_T, BLOCK_S)
    out = tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
    _store(out_ptr + b * o_b + h * o_h, o_t, out, BLOCK_T, BLOCK_D, T, D)


@triton.jit
def backward_heads(
    q_ptr, k_ptr, v_ptr, grad_ptr, keys_ptr, seed_ptr, grad_q_ptr, grad_k_ptr, grad_v_ptr,
    q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, o_b, o_h, o_t,
    gq_b, gq_h, gq_t, gk_b, gk_h, gk_t, gv_b, gv_h, gv_t,
    H, T, S, D, scale, p,
    CAUSAL: tl.constexpr, KEYS: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_T: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Compute the weights again, and the gradients of queries, keys and values."""
    b, h = (tl.program_id(0) // H).to(tl.int64), (tl.program_id(0) % H).to(tl.int64)
    q = _tile(q_ptr + b * q_b + h * q_h, q_t, BLOCK_T, BLOCK_D, T, D)
    k = _tile(k_ptr + b * k_b + h * k_h, k_t, BLOCK_S, BLOCK_D, S, D)
    v = _tile(v_ptr + b * v_b + h * v_h, v_t, BLOCK_S, BLOCK_D, S, D)
    grad = _tile(grad_ptr + b * o_b + h * o_h, o_t, BLOCK_T, BLOCK_D, T, D)
    weights = _weights(
        q, k, keys_ptr + b * S, scale, T, S, CAUSAL, KEYS, BLOCK_T, BLOCK_S, PRECISION
    )
    grad_weights = tl.dot(grad, tl.trans(v), input_precision=PRECISION)
    dropped = weights
    if DROPOUT:
        kept = _kept(seed_ptr, p, BLOCK_T, BLOCK_S)
        dropped = weights * kept
        grad_weights *= kept
    grad_v = tl.dot(tl.trans(dropped.to(v.dtype)), grad, input_precision=PRECISION)
    _store(grad_v_ptr + b * gv_b + h * gv_h, gv_t, grad_v, BLOCK_S, BLOCK_D, S, D)
    mean = tl.sum(weights * grad_weights, axis=1)
    grad_scores = (weights * (grad_weights - mean[:, None]) * scale).to(q.dtype)
    grad_q = tl.dot(grad_scores, k, input_precision=PRECISION)
    _store(grad_q_ptr + b * gq_b + h * gq_h, gq_t, grad_q, BLOCK_T, BLOCK_D, T, D)
    grad_k = tl.dot(tl.trans(grad_scores), q, input_precision=PRECISION)
    _store(grad_k_ptr + b * gk_b + h * gk_h, gk_t, grad_k, BLOCK_S, BLOCK_D, S, D)
