"""A GAT layer from its inputs in Triton kernels, differentiable.

Notation: N nodes, F width of the inputs, H heads, D width of a head, h heads of a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo_fast.gat.kernels.arguments import AttendedNodes, EdgeScore, Inputs
from zoo_fast.gat.kernels.launch import attend, gradients
from zoo_fast.gat.kernels.projection import Terms, project_nodes
from zoo_fast.gat.kernels.reference import attend_reference
from zoo_fast.gat.second_derivative import differentiable_gradients
from zoo_gat.edges import EdgeList

LARGE = 2**24
"""Number of elements of the values from which the heads are processed in two groups."""


def fused_gat_layer(
    x: Tensor,
    weight: Tensor,
    terms: Tensor,
    weight_bias: Tensor | None,
    term_bias: Tensor | None,
    bias: Tensor | None,
    edges: EdgeList,
    score: EdgeScore,
) -> Tensor:
    """Compute a GAT layer with values W x, and terms of the scores from x.

    The values of a group of heads replace those of the group before. The backward pass begins with
    the last group, computes the values of the others again, and replaces values by their gradients.

    Args:
        weight: W [H * D, F].
        terms: weights of the terms [2 * H, F], of targets and of sources.
        weight_bias: bias of the values [H * D].
        term_bias: bias of the terms [2 * H]; both biases of the projections or none are given.
        bias: bias of the output [H * D].

    Shapes:
        x [N, F] -> [N, H, D].
    """
    apply: Callable[..., Tensor] = _FusedLayer.apply
    return apply(x.contiguous(), weight, terms, weight_bias, term_bias, bias, edges, score)


class _FusedLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *parts, edges, score = arguments
        layer = _Layer(*parts)
        output: Tensor = layer.x.new_empty(len(layer.x), layer.H, layer.D)
        projected, lse = layer.empty_projected(), []
        for group in range(layer.groups):
            layer.project(group, projected, with_terms=group == 0)
            inputs, part = layer.inputs(group, projected), output[:, layer.heads(group)]
            lse.append(attend(inputs, edges, _group_score(score, group), part).lse)
        ctx.save_for_backward(*parts, output, *lse)
        ctx.edges, ctx.score, ctx.projected = edges, score, projected
        return output

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        parts, (output, *lse) = ctx.saved_tensors[:6], ctx.saved_tensors[6:]
        if torch.is_grad_enabled():  # for a second derivative

            def reference(*views: Any) -> Tensor:
                return _Layer(*views).reference(ctx.edges, ctx.score)

            return *differentiable_gradients(reference, parts, g), None, None
        layer, g = _Layer(*parts), g.contiguous()
        last = layer.groups - 1
        projected, ctx.projected = ctx.projected, None
        if projected is None:  # the backward pass is repeated
            projected = layer.empty_projected()
            layer.project(last, projected, with_terms=True)
        grad_x, grads = None, layer.empty_like()
        for group in reversed(range(layer.groups)):
            if group < last:
                layer.project(group, projected, with_terms=False)
            inputs, heads, rows = (
                layer.inputs(group, projected),
                layer.heads(group),
                layer.rows(group),
            )
            attended, score = (
                AttendedNodes(output[:, heads], lse[group]),
                _group_score(ctx.score, group),
            )
            found = gradients(inputs, ctx.edges, score, attended, g[:, heads], in_place=True)
            values = projected.values  # now the gradients
            torch.mm(values.T, layer.x, out=grads.weight[rows])
            if grads.weight_bias is not None:
                grads.weight_bias[rows] = values.sum(dim=0)
            if grads.bias is not None:
                grads.bias[rows] = found.bias
            if ctx.needs_input_grad[0]:
                weight = layer.weight[rows]
                grad_x = values @ weight if grad_x is None else grad_x.addmm_(values, weight)
        torch.mm(projected.terms.T, layer.x, out=grads.terms)
        if grads.term_bias is not None:
            grads.term_bias.copy_(projected.terms.sum(dim=0))
        if grad_x is not None:
            grad_x.addmm_(projected.terms, layer.terms)
        return grad_x, *grads.parameters(), None, None


class _Projected(NamedTuple):
    """Values [N, h * D] of a group and terms [N, 2 * H] of all heads, or their gradients."""

    values: Tensor
    terms: Tensor


@dataclass(frozen=True)
class _Layer:
    """The tensors of a layer, or their gradients; see `fused_gat_layer`."""

    x: Tensor
    weight: Tensor
    terms: Tensor
    weight_bias: Tensor | None
    term_bias: Tensor | None
    bias: Tensor | None

    def parameters(self) -> tuple[Tensor | None, ...]:
        return self.weight, self.terms, self.weight_bias, self.term_bias, self.bias

    def empty_like(self) -> _Layer:
        """Allocate the gradients of the parameters."""
        empty = [None if part is None else torch.empty_like(part) for part in self.parameters()]
        return _Layer(self.x, *empty)  # type: ignore[arg-type]

    def empty_projected(self) -> _Projected:
        """Allocate the values of a group, and the terms."""
        N = len(self.x)
        values = self.x.new_empty(N, len(self.weight) // self.groups)
        return _Projected(values, self.x.new_empty(N, len(self.terms)))

    @property
    def H(self) -> int:
        return len(self.terms) // 2

    @property
    def D(self) -> int:
        return len(self.weight) // self.H

    @property
    def groups(self) -> int:
        is_large = len(self.x) * len(self.weight) >= LARGE
        return 2 if is_large and self.H % 2 == 0 else 1

    def heads(self, group: int) -> slice:
        """Return the heads of a group."""
        h = self.H // self.groups
        return slice(group * h, (group + 1) * h)

    def rows(self, group: int) -> slice:
        """Return the elements of the heads of a group."""
        width = len(self.weight) // self.groups
        return slice(group * width, (group + 1) * width)

    def project(self, group: int, projected: _Projected, *, with_terms: bool) -> None:
        """Compute the values of a group, and the terms if needed."""
        rows = self.rows(group)
        bias = None if self.weight_bias is None else self.weight_bias[rows]
        terms = Terms(self.terms, self.term_bias, projected.terms) if with_terms else None
        project_nodes(self.x, self.weight[rows], bias, projected.values, terms)

    def inputs(self, group: int, projected: _Projected) -> Inputs:
        """Return the inputs of the attention of a group."""
        q, k = (part[:, self.heads(group)] for part in projected.terms.chunk(2, dim=1))
        bias = None if self.bias is None else self.bias[self.rows(group)]
        values = projected.values.view(len(self.x), -1, self.D)
        return Inputs(q, k, values, None, bias)

    def reference(self, edges: EdgeList, score: EdgeScore) -> Tensor:
        """Compute the layer in PyTorch operations."""
        terms, outputs = F.linear(self.x, self.terms, self.term_bias), []
        values = F.linear(self.x, self.weight, self.weight_bias)
        for group in range(self.groups):
            inputs = self.inputs(group, _Projected(values[:, self.rows(group)], terms))
            outputs.append(attend_reference(inputs, edges, _group_score(score, group)))
        return torch.cat(outputs, dim=1)


def _group_score(score: EdgeScore, group: int) -> EdgeScore:
    """Return the score of a group, whose dropout has its own random seed."""
    return replace(score, seed=score.seed + group) if score.dropout_p > 0 and group else score
