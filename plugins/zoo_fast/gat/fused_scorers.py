"""The scorers that have kernels over edges.

Notation: N nodes, H heads, D width of a head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.acceleration import plain_class
from zoo.plugin import ScorerBank
from zoo_fast.attention.score_forms import inner_product_scale
from zoo_fast.device.triton_support import why_not_triton, why_not_triton_on
from zoo_fast.gat.segment_gat import segment_gat
from zoo_gat.edges import EdgeList
from zoo_gat.gat import Gat
from zoo_gat.gatv2 import GatV2

MAX_WIDTH = 1024
"""Largest width of a head."""


def why_not_fused_on(scorers: ScorerBank, device: str) -> str | None:
    """Return the reason why the scorers have no fused path on a device type, None if they have.

    Triton kernels process `gat`, `gatv2` and inner products. On the CPU, `gat` processes all heads
    together, over sorted edges.
    """
    scorer = plain_class(scorers.first)
    if scorer is Gat and device == "cpu":
        return None
    if scorer in (Gat, GatV2) or inner_product_scale(scorers.first) is not None:
        return why_not_triton_on(device)
    return f"scorer '{scorers.first.name}' has no kernel for edges"


def why_not_fused_values(scorers: ScorerBank, values: Tensor) -> str | None:
    """Return the reason why no fused path can process the values, None if one can."""
    reason = why_not_triton(values)
    on_cpu = plain_class(scorers.first) is Gat and values.device.type == "cpu"
    if reason is None or not on_cpu:
        return reason
    return None if values.dtype in (torch.float32, torch.float64) else reason


def attend_fused(
    scorers: ScorerBank,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    edges: EdgeList,
    *,
    bias: Tensor | None,
    dropout_p: float,
) -> Tensor:
    """Attend along edges in a fused path: q, k, v [N, H, D] -> [N, H, D].

    Args:
        bias: bias of the output [H * D].
        dropout_p: dropout probability of the weights.
    """
    first = scorers.first
    if isinstance(first, Gat):
        terms = _gat_terms(scorers, q, k)
        if why_not_triton(v) is not None:
            output = segment_gat(terms, v, edges, slope=first.slope, dropout_p=dropout_p)
            return output if bias is None else output + bias.view(output.shape[1:])
    from zoo_fast.gat.kernels.fused_edges import fused_gat, fused_pairs

    if isinstance(first, Gat):
        return fused_gat(terms, v, edges, slope=first.slope, bias=bias, dropout_p=dropout_p)
    if isinstance(first, GatV2):
        a, factor = (
            torch.stack([head.a for head in scorers if isinstance(head, GatV2)]),
            first.slope,
        )
    else:
        scale = inner_product_scale(first)
        assert scale is not None
        a, factor = None, scale
    return fused_pairs(q, k, v, edges, a=a, factor=factor, bias=bias, dropout_p=dropout_p)


def attend_gat_layer(
    scorers: ScorerBank,
    inputs: Tensor,
    projection: nn.Linear,
    edges: EdgeList,
    *,
    bias: Tensor | None,
    dropout_p: float,
) -> Tensor | None:
    """Attend along edges from inputs [N, input_dim], with one projection W -> [N, H, D].

    The term uᵀ W x of a score is computed as (Wᵀ u)ᵀ x. Returns None where this is not cheaper: for
    other scorers, wide inputs, under autocast and if no Triton kernel applies.
    """
    weight = projection.weight
    is_wide = weight.shape[1] > 2 * weight.shape[0]
    if not isinstance(scorers.first, Gat) or is_wide or not inputs.numel():
        return None
    autocast = torch.is_autocast_enabled(inputs.device.type)
    if autocast or inputs.dtype != weight.dtype or why_not_triton(inputs, weight) is not None:
        return None
    from zoo_fast.gat.kernels.arguments import EdgeScore
    from zoo_fast.gat.kernels.fused_edges import draw_seed
    from zoo_fast.gat.kernels.fused_layer import fused_gat_layer
    from zoo_fast.gat.kernels.score_kinds import GAT

    vectors, term_bias = _gat_vectors(scorers)
    H, D = vectors.shape[1:]
    # A sum instead of a product of matrices, so that no workspace of cuBLAS is needed.
    terms = (vectors[..., None] * weight.view(H, D, -1)).sum(dim=2).flatten(0, 1)
    weight_bias, term_bias = _projection_biases(projection, vectors, term_bias)
    score = EdgeScore(GAT, scorers.first.slope, dropout_p, draw_seed(inputs, dropout_p))
    return fused_gat_layer(inputs, weight, terms, weight_bias, term_bias, bias, edges, score)


def _projection_biases(
    projection: nn.Linear, vectors: Tensor, term_bias: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """Return the biases of the values [H * D] and of the terms [2 * H], both or none."""
    H, D = vectors.shape[1:]
    bias = projection.bias
    if bias is None:
        if term_bias is None:
            return None, None
        return projection.weight.new_zeros(H * D), term_bias
    shift = torch.einsum("hd,chd->ch", bias.view(H, D), vectors).flatten()
    return bias, shift if term_bias is None else shift + term_bias


def _gat_terms(scorers: ScorerBank, q: Tensor, k: Tensor) -> Tensor:
    """Compute the terms of GAT from queries and keys [N, H, D] -> [N, 2 * H]."""
    vectors, bias = _gat_vectors(scorers)
    H = vectors.shape[1]
    # Block-diagonal matrices, so that the terms of all heads are one product.
    identity = torch.eye(H, dtype=vectors.dtype, device=vectors.device)
    blocks = torch.einsum("chd,hg->chdg", vectors, identity)
    u, v = blocks.flatten(1, 2)  # [H * D, H]
    if q is k:
        terms = q.flatten(1) @ torch.cat([u, v], dim=1)
    else:
        terms = torch.cat([q.flatten(1) @ u, k.flatten(1) @ v], dim=1)
    return terms if bias is None else terms + bias


def _gat_vectors(scorers: ScorerBank) -> tuple[Tensor, Tensor | None]:
    """Return u and v of all heads [2, H, D], and their biases [2 * H] if they have them."""
    heads = [scorer for scorer in scorers if isinstance(scorer, Gat)]
    linears = [*(scorer.u for scorer in heads), *(scorer.v for scorer in heads)]
    vectors = torch.cat([linear.weight for linear in linears])
    bias = torch.cat([linear.bias for linear in linears]) if heads[0].bias else None
    return vectors.view(2, len(heads), -1), bias
