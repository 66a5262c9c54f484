"""Triton kernel of attention with one query per head and row.

Notation: R rows, W rows per source, H query heads, S keys, D width of a head. A row is a hypothesis
or one of the TOKENS of a prompt, which have one cache. A program computes G query heads of one head
of keys, which SHARE programs read.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Conditions on constants select code at compile time, so they are not joined with others.
# ruff: noqa: SIM102

import triton
import triton.language as tl

from zoo_fast.transformer.kernels.products_triton import FLOAT32_PRECISION


@triton.jit
def _load_rows(start, slot, s, within, d, D: tl.constexpr, stride_b, stride_s):
    """Load the keys or values [BS, BD] of one head at positions s of the rows ``slot``."""
    at = slot.to(tl.int64) * stride_b + s * stride_s
    return tl.load(
        start + at[:, None] + d[None, :], mask=within[:, None] & (d < D)[None, :], other=0.0
    )


@triton.jit
def _add_block(q, k, v, valid, scale, highest, total, acc, BG: tl.constexpr):
    """Add a block of keys to the highest score [BG], the sum [BG] and the context [BG, BD]."""
    PRECISION: tl.constexpr = FLOAT32_PRECISION if q.dtype == tl.float32 else None
    if BG == 1:
        scores = tl.sum(q.to(tl.float32) * k.to(tl.float32), 1)[None, :]
    else:
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION)
    scores = tl.where(valid[None, :], scores * scale, float("-inf"))  # [BG, BS]
    new = tl.maximum(highest, tl.max(scores, 1))
    # If no key is valid yet, the highest score is -inf.
    shift = tl.where(new == float("-inf"), 0.0, new)
    p = tl.exp(scores - shift[:, None])
    decay = tl.exp(highest - shift)
    total = total * decay + tl.sum(p, 1)
    if BG == 1:
        acc = acc * decay[:, None] + tl.sum(tl.trans(p) * v.to(tl.float32), 0)[None, :]
    else:
        acc = tl.dot(p.to(v.dtype), v, acc * decay[:, None], input_precision=PRECISION)
    return new, total, acc


@triton.jit
def attend(
    query,  # [R, H, D]
    keys,
    values,
    at,  # [R], position of the query; used with CACHED
    slots,  # [R, S], row of the source at which the keys of each position are; used with SLOTS
    mask,  # [R / W, S], True where a key is attended to; used with MASKED
    output,  # [R, H, D], or [R, H, SPLITS, D] in float32
    logsumexp,  # [R, H, SPLITS], output; used with SPLITS > 1
    S,
    W,
    scale,
    key_b,
    key_h,
    key_s,
    value_b,
    value_h,
    value_s,
    D: tl.constexpr,
    TOKENS: tl.constexpr,
    CACHED: tl.constexpr,
    SLOTS: tl.constexpr,
    MASKED: tl.constexpr,
    SPLITS: tl.constexpr,
    G: tl.constexpr,
    SHARE: tl.constexpr,
    BG: tl.constexpr,
    BD: tl.constexpr,
    BS: tl.constexpr,
    STATIC: tl.constexpr,
    PDL: tl.constexpr,
):
    """Attend to the keys of the previous positions, or to those of the source.

    With STATIC a program loads its BS keys at once, without waiting for the position; those of the
    source, which no kernel of a step writes, before the kernel before ends."""
    DTYPE: tl.constexpr = query.dtype.element_ty
    row, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    H = tl.num_programs(1) * G
    source, first_row = row // W, row // W * W
    g, d = tl.arange(0, BG), tl.arange(0, BD)
    s = split * BS + tl.arange(0, BS)
    key, value = keys + head // SHARE * key_h, values + head // SHARE * value_h
    if STATIC and not CACHED:
        within = s < S
        slot = source + tl.zeros([BS], tl.int32)
        k = _load_rows(key, slot, s, within, d, D, key_b, key_s)
        v = _load_rows(value, slot, s, within, d, D, value_b, value_s)
        if MASKED:
            within &= tl.load(mask + source * S + s, mask=within, other=0) != 0
    if PDL:
        tl.extra.cuda.gdc_wait()
    q_mask = (g < G)[:, None] & (d < D)[None, :]
    q_at = (row * H + head * G + g)[:, None] * D + d[None, :]
    q = tl.load(query + q_at, mask=q_mask, other=0.0)  # [BG, BD]
    if CACHED:
        position = tl.load(at + row).to(tl.int32)
        length = position + 1
        if SLOTS:
            if head == 0:
                tl.store(slots + row * S + position, row - first_row)
    else:
        position = -1
        length = S

    highest = tl.full([BG], float("-inf"), tl.float32)
    total = tl.zeros([BG], tl.float32)
    acc = tl.zeros([BG, BD], tl.float32)
    if STATIC:
        if CACHED:
            within = s < S
            slot = row // TOKENS + tl.zeros([BS], tl.int32)
            if SLOTS:
                own = tl.load(slots + row * S + s, mask=within & (s != position), other=0)
                slot = tl.where(s == position, row, first_row + own.to(tl.int32))
            k = _load_rows(key, slot, s, within, d, D, key_b, key_s)
            v = _load_rows(value, slot, s, within, d, D, value_b, value_s)
        valid = within & (s < length)
        highest, total, acc = _add_block(q, k, v, valid, scale, highest, total, acc, BG)
    else:
        size = tl.cdiv(length, SPLITS * BS) * BS
        end = tl.minimum((split + 1) * size, length)
        for first in range(split * size, end, BS):
            s = first + tl.arange(0, BS)
            valid = s < end
            if CACHED:
                slot = row // TOKENS + tl.zeros([BS], tl.int32)
                if SLOTS:
                    own = tl.load(slots + row * S + s, mask=valid & (s != position), other=0)
                    slot = tl.where(s == position, row, first_row + own.to(tl.int32))
            else:
                slot = source + tl.zeros([BS], tl.int32)
            k = _load_rows(key, slot, s, valid, d, D, key_b, key_s)
            v = _load_rows(value, slot, s, valid, d, D, value_b, value_s)
            if MASKED:
                valid &= tl.load(mask + source * S + s, mask=valid, other=0) != 0
            highest, total, acc = _add_block(q, k, v, valid, scale, highest, total, acc, BG)
    context = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    if SPLITS == 1:
        tl.store(output + q_at, context.to(DTYPE), mask=q_mask)
    else:
        part = (row * H + head * G + g) * SPLITS + split
        tl.store(output + part[:, None] * D + d[None, :], context, mask=q_mask)
        tl.store(logsumexp + part, highest + tl.log(total), mask=g < G)


@triton.jit
def combine(
    parts,  # [R H, SPLITS, D]
    logsumexp,  # [R H, SPLITS]
    output,  # [R H, D]
    D: tl.constexpr,
    SPLITS: tl.constexpr,
    BD: tl.constexpr,
    BP: tl.constexpr,
    PDL: tl.constexpr,
):
    """Combine the contexts of all splits of the keys."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row = tl.program_id(0)
    p, d = tl.arange(0, BP), tl.arange(0, BD)
    lse = tl.load(logsumexp + row * SPLITS + p, mask=p < SPLITS, other=float("-inf"))
    highest = tl.max(lse, 0)
    weights = tl.exp(lse - tl.where(highest == float("-inf"), 0.0, highest))
    total = tl.sum(weights, 0)
    mask = (p < SPLITS)[:, None] & (d < D)[None, :]
    part = tl.load(parts + (row * SPLITS + p)[:, None] * D + d[None, :], mask=mask, other=0.0)
    context = tl.sum(weights[:, None] * part, 0) / tl.where(total == 0.0, 1.0, total)
    tl.store(output + row * D + d, context.to(output.dtype.element_ty), mask=d < D)
