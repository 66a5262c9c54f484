"""Triton kernels of the forward pass of attention over sorted edges.

Notation: N nodes, M edges, H heads, D width of a head, C chunks. A chunk is a range of edges of one
target. One program processes a chunk, EB edges and HB heads at a time; no tensor [M, H, D] is
stored. Targets with several chunks store partial sums, which `combine` adds.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.gat.kernels.chunks import head_block, load_chunk, load_heads, load_terms
from zoo_fast.gat.kernels.edge_scores import (
    GAT,
    GATV2,
    NEG,
    keep_factor,
    leaky_relu,
    log_sum,
    pair_scores,
)


@triton.jit
def forward(
    q,  # GAT: terms [N, H]; otherwise queries [N, H, D]
    k,  # the same for the sources
    v,  # [N, H, D]
    a,  # GATv2: [H, D]
    bias,  # [H * D] if HAS_BIAS
    is_valid,  # [N], mask of the nodes
    chunks,  # [C, 4]: target, first edge, end, position of the partial sums or -1
    sources,  # [M], by target
    edge_ids,  # [M], by target
    seed,  # []
    output,  # [N, H, D]
    lse,  # [N, H], logarithm of the sum of exponentials
    partial,  # [P, H, D], partial sums of the output
    partial_stats,  # [P, 2, H], their maximum score and sum of exponentials
    factor,  # slope of the leaky ReLU, or scale of an inner product
    dropout_p,
    N,
    H: tl.constexpr,
    D: tl.constexpr,
    term_stride,  # GAT: stride of the nodes of q and k
    v_stride,  # stride of the nodes of v
    output_stride,  # stride of the nodes of output
    SCORE: tl.constexpr,
    SHARED: tl.constexpr,  # whether v is k
    HAS_BIAS: tl.constexpr,
    DROPOUT: tl.constexpr,
    EB: tl.constexpr,
    HB: tl.constexpr,
    DB: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Compute the weighted sum of the values of the sources of a chunk; grid (C, head blocks)."""
    node, start, end, slot = load_chunk(chunks + tl.program_id(0).to(tl.int64) * 4)
    if node >= N:
        return
    h, in_heads, offset = head_block(H, D, HB, DB)
    end = tl.where(tl.load(is_valid + node) != 0, end, start)
    if SCORE == GAT:
        q_node = load_terms(q + node * term_stride, h, H)
    else:
        q_node = load_heads(q + node * H * D, offset, in_heads)
    a_heads = tl.zeros((HB, DB), tl.float32)
    if SCORE == GATV2:
        a_heads = load_heads(a, offset, in_heads)
    largest = tl.full((HB,), NEG, tl.float32)
    total = tl.zeros((HB,), tl.float32)
    sums = tl.zeros((HB, DB), tl.float32)
    edge = start + tl.arange(0, EB)
    following = tl.load(sources + edge, mask=edge < end, other=0)
    for first in tl.range(start, end, EB, num_stages=STAGES):
        edge = first + tl.arange(0, EB)
        source = following.to(tl.int64)
        following = tl.load(sources + edge + EB, mask=edge + EB < end, other=0)
        # The loads do not wait for each other, so values of masked sources are loaded too.
        used = tl.load(is_valid + source, mask=edge < end, other=0) != 0
        in_edges = used[:, None] & (h[None, :] < H)
        rows = v + source[:, None, None] * v_stride + offset[None, :, :]
        mask = (edge[:, None, None] < end) & in_heads[None, :, :]
        values = tl.load(rows, mask=mask, other=0.0).to(tl.float32)  # [EB, HB, DB]
        values = tl.where(used[:, None, None], values, 0.0)
        if SCORE == GAT:
            terms = k + source[:, None] * term_stride + h[None, :]
            in_terms = (edge[:, None] < end) & (h[None, :] < H)
            x = q_node[None, :] + tl.load(terms, mask=in_terms, other=0.0).to(tl.float32)
            score = leaky_relu(x, factor)
        else:
            keys = values
            if not SHARED:
                rows = k + source[:, None, None] * (H * D) + offset[None, :, :]
                keys = tl.load(rows, mask=mask, other=0.0).to(tl.float32)
                keys = tl.where(used[:, None, None], keys, 0.0)
            score = pair_scores(q_node[None, :, :], keys, a_heads[None, :, :], factor, SCORE)
        score = tl.where(in_edges, score, NEG)  # [EB, HB]
        updated = tl.maximum(largest, tl.max(score, axis=0))
        weight = tl.where(in_edges, tl.exp(score - updated[None, :]), 0.0)
        decay = tl.exp(largest - updated)
        total = total * decay + tl.sum(weight, axis=0)
        kept = weight
        if DROPOUT:
            ids = tl.load(edge_ids + edge, mask=edge < end, other=0)
            kept = weight * keep_factor(seed, ids[:, None], h[None, :], H, dropout_p)
        sums = sums * decay[:, None] + tl.sum(kept[:, :, None] * values, axis=0)
        largest = updated
    if slot < 0:
        safe = tl.where(total > 0, total, 1.0)
        result = sums / safe[:, None]
        if HAS_BIAS:
            result += load_heads(bias, offset, in_heads)
        tl.store(output + node * output_stride + offset, result, mask=in_heads)
        tl.store(lse + node * H + h, log_sum(largest, total), mask=h < H)
    else:
        position = slot.to(tl.int64)
        tl.store(partial + position * H * D + offset, sums, mask=in_heads)
        stats = partial_stats + position * 2 * H + h
        tl.store(stats, largest, mask=h < H)
        tl.store(stats + H, total, mask=h < H)


@triton.jit
def combine(
    partial,  # [P, H, D]
    partial_stats,  # [P, 2, H]
    ranges,  # [P, 2]: target and end of its partial sums; end 0 if not the first of the target
    bias,  # [H * D] if HAS_BIAS
    output,  # [N, H, D]
    lse,  # [N, H]
    output_stride,  # stride of the nodes of output
    H: tl.constexpr,
    D: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    EB: tl.constexpr,
    HB: tl.constexpr,
    DB: tl.constexpr,
):
    """Combine the partial sums of a target, EB at a time; grid (P, head blocks)."""
    first = tl.program_id(0).to(tl.int64)
    node, end = tl.load(ranges + first * 2).to(tl.int64), tl.load(ranges + first * 2 + 1)
    if end == 0:
        return
    h, in_heads, offset = head_block(H, D, HB, DB)
    largest = tl.full((HB,), NEG, tl.float32)
    total = tl.zeros((HB,), tl.float32)
    sums = tl.zeros((HB, DB), tl.float32)
    for begin in range(first, end, EB):
        position = begin + tl.arange(0, EB)
        in_stats = (position[:, None] < end) & (h[None, :] < H)
        stats = partial_stats + position[:, None] * 2 * H + h[None, :]
        highest = tl.load(stats, mask=in_stats, other=NEG)  # [EB, HB]
        totals = tl.load(stats + H, mask=in_stats, other=0.0)
        rows = position[:, None, None] * (H * D) + offset[None, :, :]
        mask = (position[:, None, None] < end) & in_heads[None, :, :]
        values = tl.load(partial + rows, mask=mask, other=0.0)  # [EB, HB, DB]
        updated = tl.maximum(largest, tl.max(highest, axis=0))
        decay, scale = tl.exp(largest - updated), tl.exp(highest - updated[None, :])
        total = total * decay + tl.sum(scale * totals, axis=0)
        sums = sums * decay[:, None] + tl.sum(scale[:, :, None] * values, axis=0)
        largest = updated
    safe = tl.where(total > 0, total, 1.0)
    result = sums / safe[:, None]
    if HAS_BIAS:
        result += load_heads(bias, offset, in_heads)
    tl.store(output + node * output_stride + offset, result, mask=in_heads)
    tl.store(lse + node * H + h, log_sum(largest, total), mask=h < H)
