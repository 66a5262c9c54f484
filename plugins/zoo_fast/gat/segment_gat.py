"""GAT attention over sorted edges in PyTorch operations, for the CPU.

Notation: N nodes, M edges, H heads, D width of a head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo_fast.gat.edge_orders import edge_orders
from zoo_fast.gat.second_derivative import differentiable_gradients
from zoo_fast.gat.sorted_pairs import SortedPairs
from zoo_gat.edges import EdgeList

MAX_SPREAD = 60.0
"""Largest difference between a score and the bound of a maximum at which no sum underflows."""


def segment_gat(
    terms: Tensor, v: Tensor, edges: EdgeList, *, slope: float, dropout_p: float = 0.0
) -> Tensor:
    """Compute softmax attention over edges with the scores LeakyReLU(q_target + k_source).

    The edges are processed in the order of their targets, all heads together.

    Args:
        dropout_p: dropout probability of the weights.

    Shapes:
        terms [N, 2 * H], q and k of each node; v [N, H, D] -> [N, H, D].
    """
    apply: Callable[..., Tensor] = _SegmentGat.apply
    pairs = edge_orders(edges.index).sorted_pairs.select_nodes(edges.is_valid_node)
    if not edges.is_valid_node.all():
        terms = terms.masked_fill(~edges.is_valid_node[:, None], 0.0)
    factors = None
    if dropout_p > 0:
        factors = F.dropout(terms.new_ones(len(pairs.target), v.shape[1]), dropout_p)
    return apply(terms, v, pairs, slope, factors)


def attend_pairs(
    terms: Tensor, v: Tensor, pairs: SortedPairs, slope: float, factors: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the output [N, H, D], q_i + k_j and the weights [M, H]."""
    target, source = pairs.target, pairs.source
    q, k = terms.chunk(2, dim=1)
    x = q.index_select(0, target) + k.index_select(0, source)
    scores = F.leaky_relu(x, slope)
    # A bound of the largest score of each target: no maximum over its edges is needed.
    highest, lowest = k.detach().amax(dim=0), k.detach().amin(dim=0)
    largest = F.leaky_relu(q.detach() + highest, slope)
    if not (highest - lowest).max() <= MAX_SPREAD:  # also if it is not a number
        index = target[:, None].expand_as(scores)
        largest = largest.scatter_reduce(0, index, scores.detach(), "amax", include_self=False)
    weights = (scores - largest.index_select(0, target)).exp()
    weights = weights / pairs.sum_by_target(weights).index_select(0, target)
    kept = weights if factors is None else weights * factors
    messages = v.index_select(0, source) * kept[..., None]
    return pairs.sum_by_target(messages), x, weights


class _SegmentGat(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        terms: Tensor,
        v: Tensor,
        pairs: SortedPairs,
        slope: float,
        factors: Tensor | None,
    ) -> Tensor:
        output, x, weights = attend_pairs(terms, v, pairs, slope, factors)
        ctx.save_for_backward(terms, v, factors, output, x, weights)
        ctx.pairs, ctx.slope = pairs, slope
        return output

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        terms, v, factors, output, x, weights = ctx.saved_tensors
        pairs: SortedPairs = ctx.pairs
        if torch.is_grad_enabled():  # for a second derivative

            def reference(terms: Tensor, v: Tensor) -> Tensor:
                return attend_pairs(terms, v, pairs, ctx.slope, factors)[0]

            return *differentiable_gradients(reference, (terms, v), g), None, None, None
        delta = (g * output).sum(dim=-1)  # [N, H]
        g_edges = g.index_select(0, pairs.target)  # [M, H, D]
        inner = torch.einsum("mhd,mhd->mh", g_edges, v.index_select(0, pairs.source))
        kept = weights
        if factors is not None:
            inner, kept = inner * factors, weights * factors
        grad_v = pairs.sum_by_source(g_edges.mul_(kept[..., None]))
        grad_score = inner.sub_(delta.index_select(0, pairs.target)).mul_(weights)
        grad_x = torch.ops.aten.leaky_relu_backward(grad_score, x, ctx.slope, False)
        grad_terms = torch.cat([pairs.sum_by_target(grad_x), pairs.sum_by_source(grad_x)], dim=1)
        return grad_terms, grad_v, None, None, None
