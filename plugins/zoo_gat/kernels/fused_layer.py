"""A GAT layer from its inputs in Triton kernels, differentiable.

Notation: N nodes, F width of the inputs, H heads, D width of a head, G groups of h heads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
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
    H, groups = terms.shape[1], 1
    if H % 2 == 0 and len(x) * len(weight) >= LARGE:
        groups = 2
    parts = [terms] if term_bias is None else [terms, term_bias[..., None]]
    # [2, H, *] -> [G, 2 * h, *]
    parts = [p.unflatten(1, (groups, -1)).transpose(0, 1).flatten(1, 2) for p in parts]  # type: ignore[no-untyped-call]
    grouped_bias = None if term_bias is None else parts[1].squeeze(-1)
    apply: Callable[..., Tensor] = _FusedLayer.apply
    return apply(
        x.contiguous(), weight, parts[0].contiguous(), weight_bias, grouped_bias, bias, edges, score
    )


class _FusedLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *parts, edges, score = arguments
        layer = _Layer(*parts)
        output = layer.x.new_empty(len(layer.x), layer.H, layer.D)
        lse = []
        for group in range(layer.groups):
            inputs = layer.project(group)
            heads = layer.heads(group)
            attended = attend(inputs, edges, _group_score(score, group), output[:, heads])
            lse.append(attended.lse)
        ctx.save_for_backward(*parts, output, *lse)
        ctx.edges, ctx.score = edges, score
        return output

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        *parts, output = ctx.saved_tensors[:7]
        lse = ctx.saved_tensors[7:]
        if torch.is_grad_enabled():  # for a second derivative

            def reference(*views: Tensor | None) -> Tensor:
                return _Layer(*views).reference(ctx.edges, ctx.score)

            return *differentiable_gradients(reference, tuple(parts), g), None, None
        layer, g = _Layer(*parts), g.contiguous()
        x, weight, terms, weight_bias, _, bias = parts
        grads: list[Tensor | None] = [None, *(_empty_like(part) for part in parts[1:])]
        for group in range(layer.groups):
            inputs, heads = layer.project(group), layer.heads(group)
            attended = Attended(output[:, heads], lse[group])
            score = _group_score(ctx.score, group)
            found = gradients(inputs, ctx.edges, score, attended, g[:, heads], in_place=True)
            values, both = layer.columns
            rows = layer.rows(group)
            torch.mm(values.T, x, out=_part(grads[1], rows))
            torch.mm(both.T, x, out=_part(grads[2], group))
            if weight_bias is not None:
                _part(grads[3], rows).copy_(values.sum(dim=0))
                _part(grads[4], group).copy_(both.sum(dim=0))
            if bias is not None:
                _part(grads[5], rows).copy_(found.bias)
            if ctx.needs_input_grad[0]:
                total = torch.addmm(both @ terms[group], values, weight[rows])
                grads[0] = total if grads[0] is None else grads[0].add_(total)
        return *grads, None, None


class _Layer:
    """The tensors of a layer; `columns` are values [N, h * D] and terms [N, 2 * h] of a group."""

    def __init__(self, *parts: Any) -> None:
        self.x, self.weight, self.terms, self.weight_bias, self.term_bias, self.bias = parts
        self.groups, self.h = len(self.terms), self.terms.shape[1] // 2
        self.H = self.groups * self.h
        self.D = len(self.weight) // self.H
        self._columns: tuple[Tensor, Tensor] | None = None

    @property
    def columns(self) -> tuple[Tensor, Tensor]:
        if self._columns is None:
            widths = self.h * self.D, 2 * self.h
            self._columns = empty_columns(self.x, len(self.x), widths)
        return self._columns

    def heads(self, group: int) -> slice:
        return slice(group * self.h, (group + 1) * self.h)

    def rows(self, group: int) -> slice:
        width = self.h * self.D
        return slice(group * width, (group + 1) * width)

    def project(self, group: int) -> Inputs:
        """Compute the inputs of the attention of a group, in the same memory for all groups."""
        rows = self.rows(group)
        weights = self.weight[rows], self.terms[group]
        biases = None
        if self.weight_bias is not None:
            biases = self.weight_bias[rows], self.term_bias[group]
        project_nodes(self.x, weights, biases, self.columns)
        values, terms = self.columns
        q, k = terms.chunk(2, dim=1)
        bias = None if self.bias is None else self.bias[rows]
        return Inputs(q, k, values.view(-1, self.h, self.D), None, bias)

    def reference(self, edges: EdgeList, score: Score) -> Tensor:
        """Compute the layer in PyTorch operations."""
        outputs = []
        for group in range(self.groups):
            rows = self.rows(group)
            values, terms = self.x @ self.weight[rows].T, self.x @ self.terms[group].T
            if self.weight_bias is not None:
                values = values + self.weight_bias[rows]
                terms = terms + self.term_bias[group]
            q, k = terms.chunk(2, dim=1)
            bias = None if self.bias is None else self.bias[rows]
            inputs = Inputs(q, k, values.view(-1, self.h, self.D), None, bias)
            outputs.append(attend_reference(inputs, edges, _group_score(score, group)))
        return torch.cat(outputs, dim=1)


def _group_score(score: Score, group: int) -> Score:
    """Return the score of a group, whose dropout has its own random seed."""
    return replace(score, seed=score.seed + group) if score.dropout_p > 0 and group else score


def _empty_like(part: Tensor | None) -> Tensor | None:
    return None if part is None else torch.empty_like(part)


def _part(grad: Tensor | None, index: slice | int) -> Tensor:
    assert grad is not None
    return grad[index]
