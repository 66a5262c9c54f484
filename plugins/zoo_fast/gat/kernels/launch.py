"""Launches of the Triton kernels over edges.

Notation: N nodes, H heads, D width of a head.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import triton
from torch import Tensor

from zoo_fast.gat.edge_order import EdgeChunks
from zoo_fast.gat.edge_orders import edge_orders
from zoo_fast.gat.kernels import backward, backward_targets, edge_scores, forward
from zoo_fast.gat.kernels.arguments import AttendedNodes, EdgeScore, Gradients, Inputs
from zoo_fast.gat.kernels.score_kinds import GAT, GATV2
from zoo_gat.edges import EdgeList

TILE = 1024
"""Number of elements [EB, HB, DB] that a warp processes together."""
PAIR_TILE = 512
"""The same in the forward pass of wide heads, and for the two warps of kernels that read pairs."""
PROGRAMS = 4096
"""Largest number of programs of kernels that sum over all nodes or edges."""


def attend(
    inputs: Inputs, edges: EdgeList, score: EdgeScore, output: Tensor | None = None
) -> AttendedNodes:
    """Compute the attention of each node over its incoming edges.

    Args:
        output: the tensor [N, H, D] to write to, of which the nodes can have any stride; a new one
            if it is None.
    """
    v, order = inputs.v, edge_orders(edges.index).by_target
    N, H, D = v.shape
    chunks = order.chunks
    if output is None:
        output = torch.empty(v.shape, dtype=v.dtype, device=v.device)
    lse = torch.empty(N, H, dtype=torch.float32, device=v.device)
    positions = len(chunks.partial_ranges)
    partial = lse.new_empty(positions, H, D)
    stats = lse.new_empty(positions, 2, H)
    blocks = block_sizes(H, D, score.kind)
    heads, has_bias = triton.cdiv(H, blocks["HB"]), inputs.bias is not None
    bias = inputs.bias if has_bias else lse
    forward.forward[(len(chunks.chunks), heads)](
        inputs.q,
        inputs.k,
        v,
        inputs.a if score.kind == GATV2 else lse,
        bias,
        edges.is_valid_node,
        chunks.chunks,
        order.neighbours,
        edge_orders(edges.index).ids_by_target,
        score.seed,
        output,
        lse,
        partial,
        stats,
        score.factor,
        score.dropout_p,
        N,
        H,
        D,
        inputs.q.stride(0),
        v.stride(0),
        output.stride(0),
        SHARED=inputs.shared,
        HAS_BIAS=has_bias,
        **score.options,
        **blocks,
    )
    if positions:
        arguments = partial, stats, chunks.partial_ranges, bias, output, lse, output.stride(0)
        del blocks["STAGES"]
        forward.combine[(positions, heads)](*arguments, H, D, has_bias, **blocks)
    return AttendedNodes(output, lse)


def gradients(
    inputs: Inputs,
    edges: EdgeList,
    score: EdgeScore,
    attended: AttendedNodes,
    g: Tensor,
    *,
    in_place: bool = False,
) -> Gradients:
    """Compute the gradients of the inputs.

    Args:
        in_place: for GAT, replace q, k and v by their gradients.
    """
    N, H, D = inputs.v.shape
    delta = torch.empty_like(attended.lse)
    blocks = block_sizes(H, D, GAT, backward=True)
    del blocks["STAGES"]
    nodes, has_bias = blocks.pop("EB"), inputs.bias is not None
    programs = min(PROGRAMS, triton.cdiv(N, nodes))
    grads = Gradients.empty(inputs, programs, in_place=in_place)
    backward.inner_products[(programs, triton.cdiv(H, blocks["HB"]))](
        g,
        attended.output,
        inputs.bias if has_bias else g,
        delta,
        grads.bias,
        N,
        g.stride(0),
        H,
        D,
        HAS_BIAS=has_bias,
        NB=nodes,
        **blocks,
    )
    grad_x = _source_gradients(inputs, edges, score, attended.lse, delta, g, grads)
    if score.kind == GAT:
        _sum_over_edges(grad_x, edges, grads.q)
    else:
        _target_gradients(inputs, edges, score, attended.lse, delta, g, grads)
    return replace(grads, a=grads.a.sum(dim=0).view(H, D), bias=grads.bias.sum(dim=0))


def _source_gradients(
    inputs: Inputs,
    edges: EdgeList,
    score: EdgeScore,
    lse: Tensor,
    delta: Tensor,
    g: Tensor,
    grads: Gradients,
) -> Tensor:
    """Compute the gradients of keys and values, over edges sorted by source.

    Returns the gradients of q_i + k_j of each edge [M, H] for GAT, otherwise an empty tensor.
    """
    (N, H, D), order = inputs.v.shape, edge_orders(edges.index).by_source
    grad_x = lse.new_empty(len(order.neighbours) if score.kind == GAT else 0, H)
    ids = edge_orders(edges.index).ids_by_source if score.dropout_p > 0 else order.neighbours
    chunks = order.chunks
    positions = len(chunks.partial_ranges)
    partial_v = lse.new_empty(positions, H, D)
    partial_k = lse.new_empty(positions, *inputs.k.shape[1:])
    blocks = block_sizes(H, D, score.kind, backward=True)
    backward.backward_sources[(len(chunks.chunks), triton.cdiv(H, blocks["HB"]))](
        inputs.q,
        inputs.k,
        inputs.v,
        inputs.a if score.kind == GATV2 else lse,
        edges.is_valid_node,
        chunks.chunks,
        order.neighbours,
        ids,
        score.seed,
        g,
        lse,
        delta,
        grads.k,
        grads.v,
        grad_x,
        partial_k,
        partial_v,
        score.factor,
        score.dropout_p,
        N,
        H,
        D,
        inputs.q.stride(0),
        inputs.v.stride(0),
        g.stride(0),
        grads.k.stride(0),
        grads.v.stride(0),
        SHARED=inputs.shared,
        **score.options,
        **blocks,
    )
    _add_partial(partial_v, chunks, grads.v)
    if not inputs.shared:
        _add_partial(partial_k, chunks, grads.k)
    return grad_x


def _sum_over_edges(grad_x: Tensor, edges: EdgeList, grad_q: Tensor) -> None:
    """Sum the gradients of edges [M, H], sorted by source, over the edges of each target."""
    N, H = grad_q.shape
    chunks = edge_orders(edges.index).by_target.chunks
    partial = grad_x.new_empty(len(chunks.partial_ranges), H)
    heads = triton.next_power_of_2(H)
    block = max(1, 64 // heads)
    backward_targets.sum_over_edges[(triton.cdiv(len(chunks.chunks), block),)](
        grad_x,
        chunks.chunks,
        edge_orders(edges.index).position_by_source,
        grad_q,
        partial,
        grad_q.stride(0),
        len(chunks.chunks),
        N,
        H,
        CB=block,
        EB=8,
        HB=heads,
        num_warps=1,
    )
    _add_partial(partial, chunks, grad_q)


def _target_gradients(
    inputs: Inputs,
    edges: EdgeList,
    score: EdgeScore,
    lse: Tensor,
    delta: Tensor,
    g: Tensor,
    grads: Gradients,
) -> None:
    """Compute the gradients of queries and of a, over edges sorted by target."""
    (N, H, D), order = inputs.v.shape, edge_orders(edges.index).by_target
    chunks = order.chunks
    partial = lse.new_empty(len(chunks.partial_ranges), H, D)
    blocks = block_sizes(H, D, score.kind)
    del blocks["STAGES"]
    programs = len(grads.a) or min(PROGRAMS, len(chunks.chunks))
    backward_targets.backward_targets[(programs, triton.cdiv(H, blocks["HB"]))](
        inputs.q,
        inputs.k,
        inputs.v,
        inputs.a if score.kind == GATV2 else lse,
        edges.is_valid_node,
        chunks.chunks,
        order.neighbours,
        edge_orders(edges.index).ids_by_target,
        score.seed,
        g,
        lse,
        delta,
        grads.q,
        grads.a,
        partial,
        score.factor,
        score.dropout_p,
        len(chunks.chunks),
        N,
        H,
        D,
        SHARED=inputs.shared,
        **score.options,
        **blocks,
    )
    _add_partial(partial, chunks, grads.q)


def dropout_factors(weights: Tensor, score: EdgeScore) -> Tensor:
    """Return the factors that the kernels apply to weights [M, H]."""
    factors = torch.empty_like(weights)
    size, block = factors.numel(), 1024
    grid = (triton.cdiv(size, block),)
    edge_scores.dropout_factors[grid](score.seed, factors, size, score.dropout_p, B=block)
    return factors


def _add_partial(partial: Tensor, chunks: EdgeChunks, output: Tensor) -> None:
    """Write the sums of nodes with several chunks to output [N, *]."""
    positions = len(partial)
    if not positions:
        return
    width = partial[0].numel()
    columns = min(256, triton.next_power_of_2(width))
    backward_targets.add_partial[(positions, triton.cdiv(width, columns))](
        partial,
        chunks.partial_ranges,
        output,
        output.stride(0),
        width,
        PB=max(1, TILE // columns),
        WB=columns,
        num_warps=1,
    )


def block_sizes(H: int, D: int, kind: int, *, backward: bool = False) -> dict[str, int]:
    """Return the block sizes, the number of warps and of stages of a kernel over edges."""
    width = triton.next_power_of_2(D)
    heads = min(triton.next_power_of_2(H), max(1, 256 // width))
    is_narrow = heads * width <= 128
    tile = TILE if kind == GAT and (backward or is_narrow) else PAIR_TILE
    edges = max(1, min(32, tile // (heads * width)))
    warps = max(1 if kind == GAT else 2, min(8, heads * width // TILE))
    stages = 3 if kind == GAT and backward else 1
    return {"EB": edges, "HB": heads, "DB": width, "num_warps": warps, "STAGES": stages}
