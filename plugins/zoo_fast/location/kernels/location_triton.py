"""Triton kernels of the location-aware scores of one query.

Notation: B batch, S keys, D hidden width, K filters of width W = 2 R + 1; x = a + b + U f. A
program processes SB keys of an item; scores, features and sums are computed in float32.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl


@triton.jit
def tanh(x):
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def load_matrix(pointer, rows, columns, num_rows, num_columns):
    """Load [rows, columns] of a contiguous matrix in float32, zeros outside."""
    mask = (rows[:, None] < num_rows) & (columns[None, :] < num_columns)
    offset = rows.to(tl.int64)[:, None] * num_columns + columns[None, :]
    return tl.load(pointer + offset, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def hidden(a, b, U_d, f, item, s, d, S, D):
    """Compute x [SB, DB] from features f [SB, KB] and U_d [DB, KB]."""
    keys = load_matrix(b + item * S * D, s, d, S, D)
    query = tl.load(a + item * D + d, mask=d < D, other=0.0).to(tl.float32)
    return keys + query[None, :] + tl.dot(f, tl.trans(U_d), input_precision="tf32x3")


@triton.jit
def load_window(previous, item, s, r, S, R: tl.constexpr):
    """Load the previous weights [SB, WB] at s + r - R, zeros outside of the sequence."""
    position = s[:, None] + r[None, :] - R
    inside = (position >= 0) & (position < S) & (r[None, :] <= 2 * R)
    return tl.load(previous + item * S + position, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def forward(
    a,  # [B, D], term of the query
    b,  # [B, S, D], terms of the keys
    previous,  # [B, S], weights of the previous query
    F,  # [K, W]
    U,  # [D, K]
    w,  # [D]
    features,  # [B, S, K]
    scores,  # [B, S]
    S,
    D,
    K: tl.constexpr,
    R: tl.constexpr,
    SB: tl.constexpr,
    DB: tl.constexpr,
    KB: tl.constexpr,
    WB: tl.constexpr,
):
    """Compute the features f = F * previous and the scores of a block of keys; grid (B, blocks)."""
    item = tl.program_id(0).to(tl.int64)
    s = tl.program_id(1) * SB + tl.arange(0, SB)
    k = tl.arange(0, KB)
    f = tl.zeros((SB, KB), tl.float32)
    for first in range(0, 2 * R + 1, WB):
        r = first + tl.arange(0, WB)
        window = load_window(previous, item, s, r, S, R)
        filters = load_matrix(F, k, r, K, 2 * R + 1)
        f += tl.dot(window, tl.trans(filters), input_precision="tf32x3")
    total = tl.zeros((SB,), tl.float32)
    for first in range(0, D, DB):
        d = first + tl.arange(0, DB)
        x = hidden(a, b, load_matrix(U, d, k, D, K), f, item, s, d, S, D)
        vector = tl.load(w + d, mask=d < D, other=0.0).to(tl.float32)
        total += tl.sum(tanh(x) * vector[None, :], axis=1)
    rows = item * S + s
    mask = (s[:, None] < S) & (k[None, :] < K)
    tl.store(features + rows[:, None] * K + k[None, :], f, mask=mask)
    tl.store(scores + rows, total, mask=s < S)


@triton.jit
def backward(
    a,  # [B, D]
    b,  # [B, S, D]
    previous,  # [B, S]
    U,  # [D, K]
    w,  # [D]
    features,  # [B, S, K]
    g,  # [B, S], gradient of the scores
    grad_b,  # [B, S, D]
    grad_features,  # [B, K, S]
    partial_a,  # [B, blocks, D]
    partial_w,  # [B, blocks, D]
    partial_U,  # [B, blocks, D, K]
    partial_F,  # [B, blocks, K, W]
    S,
    D,
    K: tl.constexpr,
    R: tl.constexpr,
    SB: tl.constexpr,
    DB: tl.constexpr,
    KB: tl.constexpr,
    WB: tl.constexpr,
):
    """Compute gradients of a block of keys, and its sums for a, w, U and F; grid (B, blocks)."""
    item = tl.program_id(0).to(tl.int64)
    s = tl.program_id(1) * SB + tl.arange(0, SB)
    k = tl.arange(0, KB)
    f = load_matrix(features + item * S * K, s, k, S, K)
    grad = tl.load(g + item * S + s, mask=s < S, other=0.0).to(tl.float32)
    grad_f = tl.zeros((SB, KB), tl.float32)
    part = item * tl.num_programs(1) + tl.program_id(1)
    for first in range(0, D, DB):
        d = first + tl.arange(0, DB)
        U_d = load_matrix(U, d, k, D, K)
        t = tanh(hidden(a, b, U_d, f, item, s, d, S, D))
        vector = tl.load(w + d, mask=d < D, other=0.0).to(tl.float32)
        grad_x = grad[:, None] * vector[None, :] * (1.0 - t * t)  # 0 for s >= S
        mask = (s[:, None] < S) & (d[None, :] < D)
        tl.store(grad_b + (item * S + s)[:, None] * D + d[None, :], grad_x, mask=mask)
        tl.store(partial_a + part * D + d, tl.sum(grad_x, axis=0), mask=d < D)
        tl.store(partial_w + part * D + d, tl.sum(grad[:, None] * t, axis=0), mask=d < D)
        grad_U = tl.dot(tl.trans(grad_x), f, input_precision="tf32x3")  # [DB, KB]
        in_U = (d[:, None] < D) & (k[None, :] < K)
        tl.store(partial_U + (part * D + d)[:, None] * K + k[None, :], grad_U, mask=in_U)
        grad_f += tl.dot(grad_x, U_d, input_precision="tf32x3")
    mask = (s[:, None] < S) & (k[None, :] < K)
    tl.store(grad_features + (item * K + k)[None, :] * S + s[:, None], grad_f, mask=mask)
    for first in range(0, 2 * R + 1, WB):
        r = first + tl.arange(0, WB)
        window = load_window(previous, item, s, r, S, R)
        grad_F = tl.dot(tl.trans(grad_f), window, input_precision="tf32x3")  # [KB, WB]
        in_F = (k[:, None] < K) & (r[None, :] <= 2 * R)
        rows = (part * K + k)[:, None] * (2 * R + 1)
        tl.store(partial_F + rows + r[None, :], grad_F, mask=in_F)


@triton.jit
def backward_previous(
    grad_features,  # [B, K, S]
    F,  # [K, W]
    grad_previous,  # [B, S]
    S,
    K: tl.constexpr,
    R: tl.constexpr,
    SB: tl.constexpr,
    WB: tl.constexpr,
):
    """Compute the gradient of the previous weights of a block of keys; grid (B, blocks)."""
    item = tl.program_id(0).to(tl.int64)
    s = tl.program_id(1) * SB + tl.arange(0, SB)
    sums = tl.zeros((SB, WB), tl.float32)
    for first in range(0, 2 * R + 1, WB):
        r = first + tl.arange(0, WB)
        position = s[:, None] - r[None, :] + R
        inside = (position >= 0) & (position < S) & (r[None, :] <= 2 * R)
        for k in range(K):
            weights = tl.load(F + k * (2 * R + 1) + r, mask=r <= 2 * R, other=0.0).to(tl.float32)
            rows = grad_features + (item * K + k) * S + position
            sums += tl.load(rows, mask=inside, other=0.0) * weights[None, :]
    tl.store(grad_previous + item * S + s, tl.sum(sums, axis=1), mask=s < S)
