"""Triton code that rotates queries and keys of one step and stores them, and values, in caches.

Notation: M rows, H heads, Hkv heads of keys, D width of a head, S positions. Pairs of dimensions of
a head are rotated together.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Conditions on constants select code at compile time, so they are not joined with others.
# ruff: noqa: SIM102

import triton
import triton.language as tl


@triton.jit
def pair_dims(h, pair, D: tl.constexpr, INTERLEAVED: tl.constexpr):
    """Return the two dimensions of pairs of head h, among those of all heads."""
    if INTERLEAVED:
        one, two = h * D + 2 * pair, h * D + 2 * pair + 1
    else:
        one, two = h * D + pair, h * D + D // 2 + pair
    return one, two


@triton.jit
def store_heads(
    acc,  # [BM, BN], the first dimension of each pair
    other,  # [BM, BN], the second one
    c,  # [BM, BN], cosines, used with ROTARY
    s,  # [BM, BN], sines
    rows,  # [BM]
    head,  # of the queries, then of the keys, then of the values
    h,  # among its kind
    pair,  # [BN]
    position,  # [BM]
    queries,  # [M, H, D], output
    keys,  # [M / TOKENS, Hkv, S, D], output at the position
    values,  # [M / TOKENS, Hkv, S, D], output at the position
    M,
    S,
    TOKENS: tl.constexpr,
    H: tl.constexpr,
    HKV: tl.constexpr,
    D: tl.constexpr,
    ROTARY: tl.constexpr,
    INTERLEAVED: tl.constexpr,
):
    """Rotate pairs of dimensions of a head, unless it is one of the values, and store them."""
    DTYPE: tl.constexpr = queries.dtype.element_ty
    one, two = pair_dims(h, pair, D, INTERLEAVED)
    if ROTARY:
        if head < H + HKV:
            acc, other = acc * c - other * s, acc * s + other * c
    mask = (rows < M)[:, None] & (pair < D // 2)[None, :]
    acc, other = acc.to(DTYPE), other.to(DTYPE)
    cached = ((rows // TOKENS * HKV).to(tl.int64) * S + position)[:, None] * D + h * (S - 1) * D
    if head < H:
        start = queries + rows[:, None] * (H * D)
    elif head < H + HKV:
        start = keys + cached
    else:
        start = values + cached
    tl.store(start + one[None, :], acc, mask=mask)
    tl.store(start + two[None, :], other, mask=mask)


@triton.jit
def place_heads(
    query,  # [M, H D]
    key,  # [M, Hkv D]
    value,  # [M, Hkv D]
    queries,  # [M, H, D], output
    keys,  # [M / TOKENS, Hkv, S, D], output at position at[m]
    values,  # [M / TOKENS, Hkv, S, D], output at position at[m]
    at,  # [M]
    cos,  # [S, D / 2]
    sin,  # [S, D / 2]
    M,
    S,
    TOKENS: tl.constexpr,
    H: tl.constexpr,
    HKV: tl.constexpr,
    D: tl.constexpr,
    ROTARY: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    BN: tl.constexpr,
    PDL: tl.constexpr,
):
    """Rotate and store one head of one row; BN is at least D / 2."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    HALF: tl.constexpr = D // 2
    rows, head = tl.program_id(0) + tl.arange(0, 1), tl.program_id(1)
    pair = tl.arange(0, BN)
    if head < H:
        source, h = query + rows * (H * D), head
    elif head < H + HKV:
        source, h = key + rows * (HKV * D), head - H
    else:
        source, h = value + rows * (HKV * D), head - H - HKV
    one, two = pair_dims(h, pair, D, INTERLEAVED)
    within = (pair < HALF)[None, :]
    acc = tl.load(source[:, None] + one[None, :], mask=within, other=0.0).to(tl.float32)
    other = tl.load(source[:, None] + two[None, :], mask=within, other=0.0).to(tl.float32)
    position = tl.load(at + rows)
    c = tl.zeros([1, BN], tl.float32)
    s = c
    if ROTARY:
        place = position[:, None] * HALF + pair[None, :]
        c = tl.load(cos + place, mask=within, other=0.0).to(tl.float32)
        s = tl.load(sin + place, mask=within, other=0.0).to(tl.float32)
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
