"""A GAT layer from its inputs in Triton kernels, differentiable.

Notation: N nodes, F width of the inputs, H heads, D width of a head; G groups of h heads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo_gat.edges import EdgeList
from zoo_gat.kernels.arguments import Attended, Inputs, Score
from zoo_gat.kernels.launch import attend, gradients
from zoo_gat.kernels.projection import empty_columns, project_nodes
from zoo_gat.kernels.reference import attend_reference
from zoo_gat.second_derivative import differentiable_gradients

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
    score: Score,
) -> Tensor:
    """Compute a GAT layer with values W x, and terms of the scores from x.

    The values of a group of heads are computed in the forward pass and again in the backward pass,
    where their gradients replace them, so that little memory is needed.

    Args:
        weight: W [H * D, F].
        terms: weights of the terms [2, H, F], of targets and of sources.
        weight_bias: bias of the values [H * D].
        term_bias: bias of the terms [2, H]; both biases of the projections or none are given.
        bias: bias of the output [H * D].

    Shapes:
        x [N, F] -> [N, H, D].
    """
    is_large = len(x) * len(weight) >= LARGE
    groups = 2 if is_large and terms.shape[1] % 2 == 0 else 1
    grouped = _group_terms(terms, groups).contiguous()
    if term_bias is not None:
        term_bias = _group_terms(term_bias[..., None], groups).squeeze(-1)
    apply: Callable[..., Tensor] = _FusedLayer.apply
    return apply(x.contiguous(), weight, grouped, weight_bias, term_bias, bias, edges, score)


def _group_terms(terms: Tensor, groups: int) -> Tensor:
    """Return the terms [2, H, F] as [G, 2 * h, F]."""
    return terms.view(2, groups, -1, terms.shape[2]).transpose(0, 1).flatten(1, 2)


class _FusedLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *parts, edges, score = arguments
        layer = _Layer(*parts)
        output: Tensor = layer.x.new_empty(len(layer.x), layer.groups * layer.h, layer.D)
        lse = []
        for group in range(layer.groups):
            part, of_group = output[:, layer.heads(group)], _group_score(score, group)
            lse.append(attend(layer.project(group), edges, of_group, part).lse)
        ctx.save_for_backward(*parts, output, *lse)
        ctx.edges, ctx.score = edges, score
        return output

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        parts, (output, *lse) = ctx.saved_tensors[:6], ctx.saved_tensors[6:]
        if torch.is_grad_enabled():  # for a second derivative

            def reference(*views: Any) -> Tensor:
                return _Layer(*views).reference(ctx.edges, ctx.score)

            return *differentiable_gradients(reference, parts, g), None, None
        layer, g = _Layer(*parts), g.contiguous()
        grad_x = None
        grads = layer.empty_like()
        for group in range(layer.groups):
            heads, rows = layer.heads(group), layer.rows(group)
            attended, score = Attended(output[:, heads], lse[group]), _group_score(ctx.score, group)
            inputs, g_group = layer.project(group), g[:, heads]
            found = gradients(inputs, ctx.edges, score, attended, g_group, in_place=True)
            values, terms = layer.columns  # now the gradients
            torch.mm(values.T, layer.x, out=grads.weight[rows])
            torch.mm(terms.T, layer.x, out=grads.terms[group])
            if grads.weight_bias is not None and grads.term_bias is not None:
                grads.weight_bias[rows] = values.sum(dim=0)
                grads.term_bias[group] = terms.sum(dim=0)
            if grads.bias is not None:
                grads.bias[rows] = found.bias
            if ctx.needs_input_grad[0]:
                part = torch.addmm(terms @ layer.terms[group], values, layer.weight[rows])
                grad_x = part if grad_x is None else grad_x.add_(part)
        return grad_x, *grads.parameters(), None, None


@dataclass(frozen=True)
class _Layer:
    """The tensors of a layer, or their gradients; see `fused_gat_layer`.

    Shapes:
        terms [G, 2 * h, F]; term_bias [G, 2 * h].
    """

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

    @property
    def groups(self) -> int:
        return len(self.terms)

    @property
    def h(self) -> int:
        return self.terms.shape[1] // 2

    @property
    def D(self) -> int:
        return len(self.weight) // (self.groups * self.h)

    @cached_property
    def columns(self) -> tuple[Tensor, Tensor]:
        """Memory for the values [N, h * D] and the terms [N, 2 * h] of a group."""
        return empty_columns(self.x, len(self.x), (self.h * self.D, 2 * self.h))

    def heads(self, group: int) -> slice:
        """Return the heads of a group."""
        return slice(group * self.h, (group + 1) * self.h)

    def rows(self, group: int) -> slice:
        """Return the elements of the heads of a group."""
        return slice(group * self.h * self.D, (group + 1) * self.h * self.D)

    def project(self, group: int) -> Inputs:
        """Compute the inputs of the attention of a group, in the memory of `columns`."""
        weights, biases = self._projection(group)
        project_nodes(self.x, weights, biases, self.columns)
        return self._inputs(*self.columns, group)

    def reference(self, edges: EdgeList, score: Score) -> Tensor:
        """Compute the layer in PyTorch operations."""
        outputs = []
        for group in range(self.groups):
            weights, biases = self._projection(group)
            bias, term_bias = biases or (None, None)
            values = F.linear(self.x, weights[0], bias)
            inputs = self._inputs(values, F.linear(self.x, weights[1], term_bias), group)
            outputs.append(attend_reference(inputs, edges, _group_score(score, group)))
        return torch.cat(outputs, dim=1)

    def _projection(self, group: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor] | None]:
        """Return the weights of values and terms of a group, and their biases."""
        rows, biases = self.rows(group), None
        if self.weight_bias is not None and self.term_bias is not None:
            biases = self.weight_bias[rows], self.term_bias[group]
        return (self.weight[rows], self.terms[group]), biases

    def _inputs(self, values: Tensor, terms: Tensor, group: int) -> Inputs:
        q, k = terms.chunk(2, dim=1)
        bias = None if self.bias is None else self.bias[self.rows(group)]
        return Inputs(q, k, values.view(-1, self.h, self.D), None, bias)


def _group_score(score: Score, group: int) -> Score:
    """Return the score of a group, whose dropout has its own random seed."""
    return replace(score, seed=score.seed + group) if score.dropout_p > 0 and group else score
