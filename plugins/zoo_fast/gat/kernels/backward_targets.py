"""Triton kernels of the backward pass over edges sorted by target, and sums of partial sums.

Notation as in `forward` and `backward`.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.gat.kernels.chunks import head_block, load_chunk, load_heads, load_terms
from zoo_fast.gat.kernels.edge_scores import GATV2, keep_factor, leaky_relu, pair_scores


@triton.jit
def backward_targets(
    q,  # [N, H, D]
    k,  # [N, H, D]
    v,  # [N, H, D]
    a,  # GATv2: [H, D]
    is_valid,  # [N], mask of the nodes
    chunks,  # [C, 4]: target, first edge, end, position of the partial sums or -1
    sources,  # [M], by target
    edge_ids,  # [M], by target
    seed,  # []
    g,  # [N, H, D]
    lse,  # [N, H]
    delta,  # [N, H]
    grad_q,  # [N, H, D]
    grad_a,  # GATv2: [programs, H * D], sums of each program
    partial,  # [P, H, D]
    factor,
    dropout_p,
    C,
    N,
    H: tl.constexpr,
    D: tl.constexpr,
    SCORE: tl.constexpr,
    SHARED: tl.constexpr,
    DROPOUT: tl.constexpr,
    EB: tl.constexpr,
    HB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute the gradients of the queries and of a; grid (programs, head blocks).

    A program processes several chunks, so that few sums for the gradient of a are stored.
    """
    h, in_heads, offset = head_block(H, D, HB, DB)
    a_heads = tl.zeros((HB, DB), tl.float32)
    if SCORE == GATV2:
        a_heads = load_heads(a, offset, in_heads)
    a_sums = tl.zeros((HB, DB), tl.float32)
    for index in range(tl.program_id(0).to(tl.int64), C, tl.num_programs(0)):
        node, start, end, slot = load_chunk(chunks + index * 4)
        exists = node < N  # not all chunks are used
        end = tl.where(exists, end, start)
        node = tl.minimum(node, N - 1)
        end = tl.where(tl.load(is_valid + node) != 0, end, start)
        row = node * H * D + offset
        q_node = load_heads(q + node * H * D, offset, in_heads)
        g_node = load_heads(g + node * H * D, offset, in_heads)
        normaliser = load_terms(lse + node * H, h, H)
        inner_node = load_terms(delta + node * H, h, H)
        q_sums = tl.zeros((HB, DB), tl.float32)
        for first in range(start, end, EB):
            edge = first + tl.arange(0, EB)
            source = tl.load(sources + edge, mask=edge < end, other=0).to(tl.int64)
            used = tl.load(is_valid + source, mask=edge < end, other=0) != 0
            in_edges = used[:, None] & (h[None, :] < H)
            rows = source[:, None, None] * (H * D) + offset[None, :, :]
            mask = used[:, None, None] & in_heads[None, :, :]
            keys = tl.load(k + rows, mask=mask, other=0.0).to(tl.float32)  # [EB, HB, DB]
            values = keys
            if not SHARED:
                values = tl.load(v + rows, mask=mask, other=0.0).to(tl.float32)
            score = pair_scores(q_node[None, :, :], keys, a_heads[None, :, :], factor, SCORE)
            shifted = tl.where(in_edges, score - normaliser[None, :], 0.0)
            weight = tl.where(in_edges, tl.exp(shifted), 0.0)
            inner = tl.sum(g_node[None, :, :] * values, axis=2)  # [EB, HB]
            if DROPOUT:
                ids = tl.load(edge_ids + edge, mask=edge < end, other=0)
                inner *= keep_factor(seed, ids[:, None], h[None, :], H, dropout_p)
            grad_score = (weight * (inner - inner_node[None, :]))[:, :, None]
            if SCORE == GATV2:
                x = q_node[None, :, :] + keys
                q_sums += tl.sum(grad_score * tl.where(x >= 0, 1.0, factor), axis=0)
                a_sums += tl.sum(grad_score * leaky_relu(x, factor), axis=0)
            else:
                q_sums += tl.sum(grad_score * keys, axis=0)
        q_sums *= a_heads if SCORE == GATV2 else factor
        if exists:
            if slot < 0:
                tl.store(grad_q + row, q_sums, mask=in_heads)
            else:
                tl.store(partial + slot.to(tl.int64) * H * D + offset, q_sums, mask=in_heads)
    if SCORE == GATV2:
        row = tl.program_id(0).to(tl.int64) * H * D + offset
        tl.store(grad_a + row, a_sums, mask=in_heads)


@triton.jit
def sum_over_edges(
    grad_x,  # [M, H], by source
    chunks,  # [C, 4]: target, first edge, end, position of the partial sums or -1
    positions,  # [M], by target: the positions of the edges by source
    grad_q,  # [N, H], with stride
    partial,  # [P, H]
    stride,
    C,
    N,
    H: tl.constexpr,
    CB: tl.constexpr,
    EB: tl.constexpr,
    HB: tl.constexpr,
):
    """Sum values of edges over the edges of CB chunks; grid (blocks,)."""
    index = tl.program_id(0) * CB + tl.arange(0, CB)
    chunk = chunks + index.to(tl.int64) * 4
    node = tl.load(chunk, mask=index < C, other=N)
    start = tl.load(chunk + 1, mask=index < C, other=0)
    end = tl.load(chunk + 2, mask=index < C, other=0)
    slot = tl.load(chunk + 3, mask=index < C, other=-1)
    exists = node < N  # not all chunks are used
    length = tl.where(exists, end - start, 0)
    h = tl.arange(0, HB)
    sums = tl.zeros((CB, EB, HB), tl.float32)
    for first in range(0, tl.max(length, axis=0), EB):
        place = first + tl.arange(0, EB)
        inside = place[None, :] < length[:, None]
        edge = start[:, None] + place[None, :]
        position = tl.load(positions + edge, mask=inside, other=0).to(tl.int64)
        mask = inside[:, :, None] & (h[None, None, :] < H)
        rows = grad_x + position[:, :, None] * H + h[None, None, :]
        sums += tl.load(rows, mask=mask, other=0.0)
    total = tl.sum(sums, axis=1)  # [CB, HB]
    row, in_heads = node.to(tl.int64)[:, None] * stride + h[None, :], h[None, :] < H
    tl.store(grad_q + row, total, mask=(exists & (slot < 0))[:, None] & in_heads)
    row = slot.to(tl.int64)[:, None] * H + h[None, :]
    tl.store(partial + row, total, mask=(exists & (slot >= 0))[:, None] & in_heads)


@triton.jit
def add_partial(
    partial,  # [P, W]
    ranges,  # [P, 2]: node and end of its partial sums; end 0 if not the first of the node
    output,  # [N, W], with stride
    stride,
    W,
    PB: tl.constexpr,
    WB: tl.constexpr,
):
    """Add the partial sums of a node; grid (P, W blocks)."""
    first = tl.program_id(0).to(tl.int64)
    node, end = tl.load(ranges + first * 2).to(tl.int64), tl.load(ranges + first * 2 + 1)
    if end == 0:
        return
    column = tl.program_id(1) * WB + tl.arange(0, WB)
    sums = tl.zeros((PB, WB), tl.float32)
    for begin in range(first, end, PB):
        slot = begin + tl.arange(0, PB)
        mask = (slot[:, None] < end) & (column[None, :] < W)
        sums += tl.load(partial + slot[:, None] * W + column[None, :], mask=mask, other=0.0)
    tl.store(output + node * stride + column, tl.sum(sums, axis=0), mask=column < W)
