"""Triton kernels of the backward pass of attention over sorted edges.

Notation as in `forward`; g is the gradient of the output. The gradient of the score of an edge from
j to i is w (f g_i . v_j - delta_i) with its weight w, its dropout factor f and delta_i = g_i .
output_i. The weights are recomputed from the logarithm of the sum of exponentials.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.gat.kernels.chunks import head_block, load_chunk, load_heads, load_terms
from zoo_fast.gat.kernels.edge_scores import (
    DOT,
    GAT,
    GATV2,
    NO_EDGES,
    keep_factor,
    leaky_relu,
    pair_scores,
)


@triton.jit
def inner_products(
    g,  # [N, H, D]
    output,  # [N, H, D]
    bias,  # [H * D] if HAS_BIAS
    delta,  # [N, H]
    grad_bias,  # [programs, H * D] if HAS_BIAS, sums of each program
    N,
    stride,  # stride of the nodes of g and output
    H: tl.constexpr,
    D: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    NB: tl.constexpr,
    HB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute delta, the inner products of g and output - bias, and the gradient of the bias.

    Grid (programs, head blocks); a program processes several blocks of nodes.
    """
    h, in_heads, offset = head_block(H, D, HB, DB)
    sums = tl.zeros((NB, HB, DB), tl.float32)
    shift = tl.zeros((HB, DB), tl.float32)
    if HAS_BIAS:
        shift = load_heads(bias, offset, in_heads)
    first = tl.program_id(0).to(tl.int64) * NB
    for begin in range(first, N, tl.num_programs(0) * NB):
        node = begin + tl.arange(0, NB)
        mask = (node[:, None, None] < N) & in_heads[None, :, :]
        rows = node.to(tl.int64)[:, None, None] * stride + offset[None, :, :]
        grad = tl.load(g + rows, mask=mask, other=0.0).to(tl.float32)
        values = tl.load(output + rows, mask=mask, other=0.0).to(tl.float32)
        inner = tl.sum(grad * (values - shift[None, :, :]), axis=2)
        pointers = delta + node.to(tl.int64)[:, None] * H + h[None, :]
        tl.store(pointers, inner, mask=(node[:, None] < N) & (h[None, :] < H))
        sums += grad
    if HAS_BIAS:
        row = grad_bias + tl.program_id(0) * H * D + offset
        tl.store(row, tl.sum(sums, axis=0), mask=in_heads)


@triton.jit
def backward_sources(
    q,  # GAT: terms [N, H]; otherwise queries [N, H, D]
    k,  # the same for the sources
    v,  # [N, H, D]
    a,  # GATv2: [H, D]
    is_valid,  # [N], mask of the nodes
    chunks,  # [C, 4]: source, first edge, end, position of the partial sums or -1
    targets,  # [M], by source
    edge_ids,  # [M], by source
    seed,  # []
    g,  # [N, H, D]
    lse,  # [N, H]
    delta,  # [N, H]
    grad_k,  # as k
    grad_v,  # [N, H, D]; with SHARED the sum of both gradients
    grad_x,  # GAT: [M, H], gradient of q_i + k_j of each edge, by source
    partial_k,  # [P, H] or [P, H, D]
    partial_v,  # [P, H, D]
    factor,
    dropout_p,
    N,
    H: tl.constexpr,
    D: tl.constexpr,
    term_stride,  # GAT: stride of the nodes of q and k
    v_stride,  # stride of the nodes of v
    g_stride,  # stride of the nodes of g
    grad_k_stride,  # stride of the nodes of grad_k
    grad_v_stride,  # stride of the nodes of grad_v
    SCORE: tl.constexpr,
    SHARED: tl.constexpr,
    DROPOUT: tl.constexpr,
    EB: tl.constexpr,
    HB: tl.constexpr,
    DB: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Compute the gradients of the keys and values of a chunk; grid (C, head blocks)."""
    node, start, end, slot = load_chunk(chunks + tl.program_id(0).to(tl.int64) * 4)
    if node >= N:
        return
    h, in_heads, offset = head_block(H, D, HB, DB)
    is_used = tl.load(is_valid + node) != 0
    # A masked node may have values that are not finite.
    v_node = tl.where(is_used, load_heads(v + node * v_stride, offset, in_heads), 0.0)
    a_heads = tl.zeros((HB, DB), tl.float32)
    if SCORE == GATV2:
        a_heads = load_heads(a, offset, in_heads)
    if SCORE == GAT:
        k_node = load_terms(k + node * term_stride, h, H)
        k_sums = tl.zeros((HB,), tl.float32)
    else:
        k_node = v_node
        if not SHARED:
            k_node = tl.where(is_used, load_heads(k + node * H * D, offset, in_heads), 0.0)
        k_sums = tl.zeros((HB, DB), tl.float32)
    v_sums = tl.zeros((HB, DB), tl.float32)
    edge = start + tl.arange(0, EB)
    following = tl.load(targets + edge, mask=edge < end, other=0)
    for first in tl.range(start, end, EB, num_stages=STAGES):
        edge = first + tl.arange(0, EB)
        target = following.to(tl.int64)
        following = tl.load(targets + edge + EB, mask=edge + EB < end, other=0)
        in_edges = (edge[:, None] < end) & (h[None, :] < H)
        stats = target[:, None] * H + h[None, :]
        normaliser = tl.load(lse + stats, mask=in_edges, other=NO_EDGES)
        rows = g + target[:, None, None] * g_stride + offset[None, :, :]
        mask = (edge[:, None, None] < end) & in_heads[None, :, :]
        grad = tl.load(rows, mask=mask, other=0.0).to(tl.float32)  # [EB, HB, DB]
        # Targets that are masked have weights of 0, which do not cancel what is not finite.
        used = in_edges & (normaliser < NO_EDGES) & is_used
        grad = tl.where(used[:, :, None], grad, 0.0)
        if SCORE == GAT:
            terms = q + target[:, None] * term_stride + h[None, :]
            x = k_node[None, :] + tl.load(terms, mask=in_edges, other=0.0).to(tl.float32)
            score = leaky_relu(x, factor)
        else:
            rows = q + target[:, None, None] * (H * D) + offset[None, :, :]
            x = tl.load(rows, mask=mask, other=0.0).to(tl.float32)
            x = tl.where(used[:, :, None], x, 0.0)
            score = pair_scores(x, k_node[None, :, :], a_heads[None, :, :], factor, SCORE)
        weight = tl.where(used, tl.exp(score - normaliser), 0.0)
        inner = tl.sum(grad * v_node[None, :, :], axis=2)  # [EB, HB]
        kept = weight
        if DROPOUT:
            ids = tl.load(edge_ids + edge, mask=edge < end, other=0)
            keep = keep_factor(seed, ids[:, None], h[None, :], H, dropout_p)
            kept, inner = weight * keep, inner * keep
        v_sums += tl.sum(kept[:, :, None] * grad, axis=0)
        inner -= tl.load(delta + stats, mask=in_edges, other=0.0)
        grad_score = tl.where(used, weight * inner, 0.0)
        if SCORE == GAT:
            grad_score *= tl.where(x >= 0, 1.0, factor)
            k_sums += tl.sum(grad_score, axis=0)
            edge_rows = edge.to(tl.int64)[:, None] * H + h[None, :]
            tl.store(grad_x + edge_rows, grad_score, mask=in_edges)
        elif SCORE == GATV2:
            slope = tl.where(x + k_node[None, :, :] >= 0, 1.0, factor)
            k_sums += tl.sum(grad_score[:, :, None] * slope, axis=0)
        else:
            k_sums += tl.sum(grad_score[:, :, None] * x, axis=0)
    if SCORE == GATV2:
        k_sums *= a_heads
    if SCORE == DOT:
        k_sums *= factor
    if SHARED:
        v_sums += k_sums
    if slot < 0:
        tl.store(grad_v + node * grad_v_stride + offset, v_sums, mask=in_heads)
        if SCORE == GAT:
            tl.store(grad_k + node * grad_k_stride + h, k_sums, mask=h < H)
        elif not SHARED:
            tl.store(grad_k + node * grad_k_stride + offset, k_sums, mask=in_heads)
    else:
        position = slot.to(tl.int64)
        tl.store(partial_v + position * H * D + offset, v_sums, mask=in_heads)
        if SCORE == GAT:
            tl.store(partial_k + position * H + h, k_sums, mask=h < H)
        elif not SHARED:
            tl.store(partial_k + position * H * D + offset, k_sums, mask=in_heads)
