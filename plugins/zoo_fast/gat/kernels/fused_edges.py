"""Softmax attention over edges in Triton kernels, differentiable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from zoo_fast.gat.kernels.arguments import AttendedNodes, EdgeScore, Inputs
from zoo_fast.gat.kernels.launch import attend, gradients
from zoo_fast.gat.kernels.reference import attend_reference
from zoo_fast.gat.kernels.score_kinds import DOT, GAT, GATV2
from zoo_fast.gat.second_derivative import differentiable_gradients
from zoo_gat.edges import EdgeList


def fused_gat(
    terms: Tensor,
    v: Tensor,
    edges: EdgeList,
    *,
    slope: float,
    bias: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Compute softmax attention over edges with the scores LeakyReLU(q_target + k_source).

    Args:
        slope: the slope of the leaky ReLU.
        bias: bias of the output [H * D].
        dropout_p: dropout probability of the weights.

    Shapes:
        terms [N, 2 * H], q and k of each node; v [N, H, D] -> [N, H, D].
    """
    score = EdgeScore(GAT, slope, dropout_p, draw_seed(v, dropout_p))
    return _apply(terms, None, v, None, bias, edges, score)


def fused_pairs(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    edges: EdgeList,
    *,
    a: Tensor | None = None,
    factor: float,
    bias: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Compute softmax attention over edges with the scores aᵀ LeakyReLU(q + k) or factor * qᵀk.

    Args:
        a: the vectors of GATv2; None for inner products.
        factor: the slope of the leaky ReLU, or the scale of inner products.
        bias: bias of the output [H * D].
        dropout_p: dropout probability of the weights.

    Shapes:
        q, k, v [N, H, D], a [H, D] -> [N, H, D]. Values that are the keys are read once.
    """
    kind = DOT if a is None else GATV2
    score = EdgeScore(kind, factor, dropout_p, draw_seed(v, dropout_p))
    return _apply(q, k, None if v is k else v, a, bias, edges, score)


def draw_seed(like: Tensor, dropout_p: float) -> Tensor:
    """Draw a random seed on the device, without synchronising; any tensor without dropout."""
    return torch.randint(2**31 - 1, (), device=like.device) if dropout_p > 0 else like


def _apply(*arguments: Any) -> Tensor:
    apply: Callable[..., Tensor] = _FusedEdges.apply
    return apply(*(part.contiguous() if isinstance(part, Tensor) else part for part in arguments))


class _FusedEdges(torch.autograd.Function):
    """For GAT, q are the terms [N, 2 * H] and there is no k; shared keys and values are k."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor | None,
        v: Tensor | None,
        a: Tensor | None,
        bias: Tensor | None,
        edges: EdgeList,
        score: EdgeScore,
    ) -> Tensor:
        attended = attend(_inputs(q, k, v, a, bias), edges, score)
        ctx.save_for_backward(q, k, v, a, bias, attended.output, attended.lse)
        ctx.edges, ctx.score = edges, score
        return attended.output

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        *parts, output, lse = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative

            def reference(*views: Tensor | None) -> Tensor:
                return attend_reference(_inputs(*views), ctx.edges, ctx.score)

            return *differentiable_gradients(reference, tuple(parts), g), None, None
        inputs, attended = _inputs(*parts), AttendedNodes(output, lse)
        grads = gradients(inputs, ctx.edges, ctx.score, attended, g.contiguous())
        _, k, v, a, bias = parts
        return (
            grads.q if k is not None else grads.terms,
            None if k is None else grads.k,
            None if v is None else grads.v,
            None if a is None else grads.a.to(a.dtype),
            None if bias is None else grads.bias.to(bias.dtype),
            None,
            None,
        )


def _inputs(*parts: Tensor | None) -> Inputs:
    q, k, v, a, bias = parts
    assert q is not None
    if k is None:
        assert v is not None
        q, k = q.chunk(2, dim=1)
    return Inputs(q, k, k if v is None else v, a, bias)
