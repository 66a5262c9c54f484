"""Triton kernels of GAT attention over sorted edges.

Notation: N nodes, M edges, H heads, D width of a head. The score of an edge from node j to node i
is LeakyReLU(q_i + k_j) with terms q, k [N, H]. One program processes the edges of one node, EB at a
time; no tensor [M, H, D] is stored.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

NEG = tl.constexpr(-1e30)


@triton.jit
def forward(
    q,  # [N, H]
    k,  # [N, H]
    v,  # [N, H, D]
    first_edge,  # [N + 1], the first edge of each target in the sorted list
    sources,  # [M], by target
    valid,  # [M], by target
    output,  # [N, H, D]
    lse,  # [N, H], logarithm of the sum of exponentials
    slope,
    H,
    D,
    EB: tl.constexpr,
    HB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute the weighted sum of the values of the sources of a target; grid (N,)."""
    node = tl.program_id(0).to(tl.int64)
    h, d = tl.arange(0, HB), tl.arange(0, DB)
    in_heads = (h[:, None] < H) & (d[None, :] < D)  # [HB, DB]
    q_node = tl.load(q + node * H + h, mask=h < H, other=0.0).to(tl.float32)
    largest = tl.full((HB,), NEG, tl.float32)
    total = tl.zeros((HB,), tl.float32)
    sums = tl.zeros((HB, DB), tl.float32)
    start = tl.load(first_edge + node)
    end = tl.load(first_edge + node + 1)
    for first in range(start, end, EB):
        edge = first + tl.arange(0, EB)
        used = tl.load(valid + edge, mask=edge < end, other=0) != 0
        source = tl.load(sources + edge, mask=used, other=0)
        in_edges = used[:, None] & (h[None, :] < H)
        x = tl.load(k + source[:, None] * H + h[None, :], mask=in_edges, other=0.0)
        x = x.to(tl.float32) + q_node[None, :]
        score = tl.where(used[:, None], tl.where(x >= 0, x, x * slope), NEG)  # [EB, HB]
        updated = tl.maximum(largest, tl.max(score, axis=0))
        weight = tl.where(used[:, None], tl.exp(score - updated[None, :]), 0.0)
        decay = tl.exp(largest - updated)
        offsets = source[:, None, None] * (H * D) + (h[:, None] * D + d[None, :])[None, :, :]
        mask = used[:, None, None] & in_heads[None, :, :]
        values = tl.load(v + offsets, mask=mask, other=0.0).to(tl.float32)  # [EB, HB, DB]
        sums = sums * decay[:, None] + tl.sum(weight[:, :, None] * values, axis=0)
        total = total * decay + tl.sum(weight, axis=0)
        largest = updated
    safe = tl.where(total > 0, total, 1.0)
    pointers = output + node * (H * D) + h[:, None] * D + d[None, :]
    tl.store(pointers, sums / safe[:, None], mask=in_heads)
    tl.store(lse + node * H + h, largest + tl.log(safe), mask=h < H)


@triton.jit
def backward(
    q,  # [N, H]
    k,  # [N, H]
    v,  # [N, H, D]
    first_edge,  # [N + 1], the first edge of each source in the sorted list
    targets,  # [M], by source
    valid,  # [M], by source
    order,  # [M], the index of each edge before sorting
    grad_output,  # [N, H, D]
    lse,  # [N, H]
    delta,  # [N, H], inner product of output and its gradient
    grad_v,  # [N, H, D]
    grad_k,  # [N, H]
    grad_x,  # [M, H], gradient of q_i + k_j of each edge, not sorted; zeros
    slope,
    H,
    D,
    EB: tl.constexpr,
    HB: tl.constexpr,
    DB: tl.constexpr,
):
    """Compute the gradients of the values and terms of a source; grid (N,)."""
    node = tl.program_id(0).to(tl.int64)
    h, d = tl.arange(0, HB), tl.arange(0, DB)
    in_heads = (h[:, None] < H) & (d[None, :] < D)
    offset = h[:, None] * D + d[None, :]
    k_node = tl.load(k + node * H + h, mask=h < H, other=0.0).to(tl.float32)
    v_node = tl.load(v + node * (H * D) + offset, mask=in_heads, other=0.0).to(tl.float32)
    v_sums = tl.zeros((HB, DB), tl.float32)
    k_sums = tl.zeros((HB,), tl.float32)
    start = tl.load(first_edge + node)
    end = tl.load(first_edge + node + 1)
    for first in range(start, end, EB):
        edge = first + tl.arange(0, EB)
        used = tl.load(valid + edge, mask=edge < end, other=0) != 0
        target = tl.load(targets + edge, mask=used, other=0)
        in_edges = used[:, None] & (h[None, :] < H)
        terms = target[:, None] * H + h[None, :]
        x = tl.load(q + terms, mask=in_edges, other=0.0).to(tl.float32) + k_node[None, :]
        score = tl.where(x >= 0, x, x * slope)
        normaliser = tl.load(lse + terms, mask=in_edges, other=0.0)
        weight = tl.where(in_edges, tl.exp(tl.where(in_edges, score - normaliser, 0.0)), 0.0)
        mask = used[:, None, None] & in_heads[None, :, :]
        pointers = grad_output + target[:, None, None] * (H * D) + offset[None, :, :]
        g = tl.load(pointers, mask=mask, other=0.0).to(tl.float32)  # [EB, HB, DB]
        v_sums += tl.sum(weight[:, :, None] * g, axis=0)
        inner = tl.sum(g * v_node[None, :, :], axis=2)  # [EB, HB]
        inner -= tl.load(delta + terms, mask=in_edges, other=0.0)
        grad = weight * inner * tl.where(x >= 0, 1.0, slope)
        k_sums += tl.sum(grad, axis=0)
        before = tl.load(order + edge, mask=used, other=0)
        tl.store(grad_x + before[:, None] * H + h[None, :], grad, mask=in_edges)
    tl.store(grad_v + node * (H * D) + offset, v_sums, mask=in_heads)
    tl.store(grad_k + node * H + h, k_sums, mask=h < H)
