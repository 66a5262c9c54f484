"""Triton kernels of linear layers for few rows, with the norm before and what follows them.

Notation: M rows, K input width, N output width. A program computes BM rows of BN outputs. The
ROW_BLOCKS programs of the same outputs are neighbours, so only the first reads the weights from
memory.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.transformer.kernels.heads_triton import pair_dims, store_heads
from zoo_fast.transformer.kernels.products_triton import activate, load_weights, products


@triton.jit
def linear(
    x,  # [M, K]
    weight,  # [N, K]
    bias,  # [N]
    gate,  # [N, K]
    gate_bias,  # [N]
    residual,  # [M, N]
    norm_weight,  # [K]
    norm_bias,  # [K]
    normed,  # [M, K], output
    output,  # [M, N]
    M,
    N,
    K,
    x_m,
    residual_m,
    eps,
    NORM: tl.constexpr,
    WRITE_NORMED: tl.constexpr,
    ACTIVATION: tl.constexpr,
    GATED: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    ROW_BLOCKS: tl.constexpr,
    PARTS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    NORM_BK: tl.constexpr,
    SLICES: tl.constexpr,
    STAGES: tl.constexpr,
    PDL: tl.constexpr,
    LINES: tl.constexpr,
):
    """Compute residual + f(W norm(x) + b), or residual + f(G norm(x)) * (W norm(x)).

    With PARTS > 1 each program has K inputs of as many parts, and writes its products W x to the
    output [PARTS, M, N] in float32.
    """
    first_input = tl.program_id(1) * K if PARTS > 1 else 0
    rows = tl.program_id(0) % ROW_BLOCKS * BM + tl.arange(0, BM)
    n = tl.program_id(0) // ROW_BLOCKS * BN + tl.arange(0, BN)
    shift = tl.zeros([BN], tl.float32)
    gate_shift = shift
    if HAS_BIAS:
        shift = tl.load(bias + n, mask=n < N, other=0.0).to(tl.float32)
        if GATED:
            gate_shift = tl.load(gate_bias + n, mask=n < N, other=0.0).to(tl.float32)
    place = tl.minimum(n, N - 1).to(tl.int64) * K * PARTS + first_input
    first_rows, second_rows = weight + place, gate + place
    loaded = load_weights(
        first_rows,
        second_rows,
        n < N,
        norm_weight,
        norm_bias,
        K,
        NORM,
        GATED,
        BK,
        NORM_BK,
        LINES,
        PDL,
    )
    mask = (rows < M)[:, None] & (n < N)[None, :]
    added = tl.zeros([BM, BN], tl.float32)
    if HAS_RESIDUAL:
        at = residual + rows[:, None] * residual_m + n[None, :]
        added = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    acc, gates = products(
        x + first_input,
        loaded,
        first_rows,
        second_rows,
        rows,
        n < N,
        norm_weight,
        norm_bias,
        normed,
        M,
        K,
        x_m,
        eps,
        WRITE_NORMED,
        NORM,
        GATED,
        BM,
        BN,
        BK,
        NORM_BK,
        SLICES,
        STAGES,
    )
    if PARTS > 1:
        first = tl.program_id(1).to(tl.int64) * M * N
        tl.store(output + first + rows[:, None] * N + n[None, :], acc, mask)
        return
    acc += shift[None, :]
    if GATED:
        acc = activate(gates + gate_shift[None, :], ACTIVATION) * acc
    else:
        acc = activate(acc, ACTIVATION)
    acc += added
    tl.store(output + rows[:, None].to(tl.int64) * N + n[None, :], acc.to(x.dtype.element_ty), mask)


@triton.jit
def project_heads(
    x,  # [M, K]
    query,  # [H D, K]
    key,  # [Hkv D, K]
    value,  # [Hkv D, K]
    query_bias,
    key_bias,
    value_bias,
    norm_weight,  # [K]
    norm_bias,  # [K]
    normed,  # [M, K], output
    queries,  # [M, H, D], output
    keys,  # [M / TOKENS, Hkv, S, D], output at position at[m]
    values,  # [M / TOKENS, Hkv, S, D], output at position at[m]
    at,  # [M]
    cos,  # [S, D / 2]
    sin,  # [S, D / 2]
    M,
    K,
    S,
    x_m,
    eps,
    TOKENS: tl.constexpr,
    H: tl.constexpr,
    HKV: tl.constexpr,
    D: tl.constexpr,
    NORM: tl.constexpr,
    WRITE_NORMED: tl.constexpr,
    ROTARY: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_KEY_BIAS: tl.constexpr,
    ROW_BLOCKS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    NORM_BK: tl.constexpr,
    SLICES: tl.constexpr,
    STAGES: tl.constexpr,
    PDL: tl.constexpr,
    LINES: tl.constexpr,
):
    """Compute queries, keys and values of one step; BN pairs of dimensions of one head."""
    HALF: tl.constexpr = D // 2
    rows = tl.program_id(0) % ROW_BLOCKS * BM + tl.arange(0, BM)
    first = tl.program_id(0) // ROW_BLOCKS * BN
    head, pair = first // HALF, first % HALF + tl.arange(0, BN)
    if head < H:
        weight, bias, h = query, query_bias, head
    elif head < H + HKV:
        weight, bias, h = key, key_bias, head - H
    else:
        weight, bias, h = value, value_bias, head - H - HKV
    one, two = pair_dims(h, pair, D, INTERLEAVED)
    shift = tl.zeros([BN], tl.float32)
    other_shift = shift
    if HAS_BIAS:
        shift = tl.load(bias + one).to(tl.float32)
        other_shift = tl.load(bias + two).to(tl.float32)
        if not HAS_KEY_BIAS:
            is_key = (head >= H) & (head < H + HKV)
            shift = tl.where(is_key, 0.0, shift)
            other_shift = tl.where(is_key, 0.0, other_shift)
    first_rows = weight + one.to(tl.int64) * K
    second_rows = weight + two.to(tl.int64) * K
    loaded = load_weights(
        first_rows,
        second_rows,
        pair < HALF,
        norm_weight,
        norm_bias,
        K,
        NORM,
        True,
        BK,
        NORM_BK,
        LINES,
        PDL,
    )
    position = tl.load(at + rows, mask=rows < M, other=0)  # [BM]
    c = tl.zeros([BM, BN], tl.float32)
    s = c
    if ROTARY:
        place = position[:, None] * HALF + pair[None, :]
        c, s = tl.load(cos + place).to(tl.float32), tl.load(sin + place).to(tl.float32)
    acc, other = products(
        x,
        loaded,
        first_rows,
        second_rows,
        rows,
        pair < HALF,
        norm_weight,
        norm_bias,
        normed,
        M,
        K,
        x_m,
        eps,
        WRITE_NORMED,
        NORM,
        True,
        BM,
        BN,
        BK,
        NORM_BK,
        SLICES,
        STAGES,
    )
    acc += shift[None, :]
    other += other_shift[None, :]
    store_heads(
        acc,
        other,
        c,
        s,
        rows,
        head,
        h,
        pair,
        position,
        queries,
        keys,
        values,
        M,
        S,
        TOKENS,
        H,
        HKV,
        D,
        ROTARY,
        INTERLEAVED,
    )
