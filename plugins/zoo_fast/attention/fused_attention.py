"""Accelerations of softmax attention: the context is computed without a tensor of weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from zoo.acceleration import plain_class
from zoo.attention.attention import Attended, add_position_bias
from zoo.attention.heads import merge_heads
from zoo.plugin import Acceleration, AdditiveScorer, Attention, Call, Declined, Mask, Position
from zoo_fast.attention.fused_additive import fused_additive
from zoo_fast.attention.fused_softmax import fused_softmax
from zoo_fast.attention.projections import project_inputs
from zoo_fast.attention.score_forms import prepared_scale
from zoo_fast.attention.softmax_dropout import softmax_dropout, why_not_softmax
from zoo_fast.device.triton_support import why_not_triton_on

Memory = Tensor | Mapping[str, Tensor]


class _FusedAttention(Acceleration):
    serves: ClassVar[type[Attention]] = Attention
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    called_parts: ClassVar[tuple[str, ...]] = ("query", "key", "value", "out")

    def forward(
        self,
        target: Attention,
        query: Tensor,
        memory: Memory,
        mask: Mask | None = None,
        *,
        position: Position | None = None,
        offset: int | Tensor = 0,
        state: Mapping[str, Tensor] | None = None,
        return_weights: bool = False,
    ) -> Attended | Declined:
        if return_weights:
            return Declined("the weights are returned")
        if state:
            return Declined("the attention has a state")
        context = head_contexts(target, query, memory, mask, position=position, offset=offset)
        if context is None:
            return Declined("no kernel supports the arguments")
        return Attended(target.project_output(context), {}, None)


class InnerProductAttention(_FusedAttention):
    """Softmax attention with inner products as scores: torch's scaled_dot_product_attention, or a
    Triton kernel in training with short sequences."""

    name: ClassVar[str] = "inner-product-attention"
    traceable: ClassVar[bool] = True
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float64, torch.float32, torch.bfloat16)

    def why_not(self, target: Attention, device: torch.device) -> str | None:
        return why_not_inner_product(target)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_fast.attention.example_calls import attention_calls
        from zoo_luong.dot import Dot
        from zoo_luong.general import General
        from zoo_transformer.scaled_dot import ScaledDot

        for scorer in (ScaledDot, Dot, General):
            yield from attention_calls(scorer, dtype)


class AdditiveAttention(_FusedAttention):
    """Softmax attention with additive scores in Triton kernels, for one or more heads."""

    name: ClassVar[str] = "additive-attention"

    def why_not(self, target: Attention, device: torch.device) -> str | None:
        return why_not_additive(target) or why_not_triton_on(device.type)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_bahdanau.additive import Additive
        from zoo_fast.attention.example_calls import attention_calls

        yield from attention_calls(Additive, dtype, hidden=5)


def why_not_inner_product(target: Attention) -> str | None:
    """Return why the attention is not a softmax of inner products, or None if it is."""
    reason = why_not_softmax(target.align)
    if reason is not None:
        return reason
    for scorer in target.scorers:
        if not prepared_scale.knows(scorer):
            return f"scorer '{target.scorers.first.name}' is not known as an inner product"
        if prepared_scale(scorer) is None:  # type: ignore[arg-type]
            return f"the scores of '{target.scorers.first.name}' have a cap"
    return None


def why_not_additive(target: Attention) -> str | None:
    """Return why the attention is not a softmax of additive scores, or None if it is."""
    reason = why_not_softmax(target.align)
    if reason is not None:
        return reason
    for scorer in target.scorers:
        is_additive = isinstance(scorer, AdditiveScorer) and not scorer.sequential
        if not is_additive or plain_class(scorer).score is not AdditiveScorer.score:
            return f"scorer '{target.scorers.first.name}' is not additive"
    return None


def head_contexts(
    target: Attention,
    query: Tensor,
    memory: Memory,
    mask: Mask | None,
    *,
    position: Position | None,
    offset: int | Tensor,
) -> Tensor | None:
    """Compute the contexts of the heads [B, H, T, Dv] of a softmax attention with inner products or
    additive scores; None if no kernel applies."""
    queries, prepared = project_inputs(target, query, memory, position=position, offset=offset)
    keys, values = prepared["keys"], prepared["values"]  # [B, Hkv, S, *]
    mask = add_position_bias(target, mask, position, query, queries, keys, offset)
    scale, dropout_p = prepared_scale(target.scorers.first), softmax_dropout(target.align)
    if dropout_p is None:
        return None
    if scale is not None:
        return fused_softmax(queries, keys, values, mask, scale=scale, dropout_p=dropout_p)
    a, v = _additive_terms(target, queries)
    return fused_additive(a, keys, v, values, mask, dropout_p=dropout_p)


def merged_context(
    target: Attention,
    query: Tensor,
    memory: Memory,
    mask: Mask | None,
    *,
    position: Position | None,
    offset: int | Tensor,
) -> Tensor | None:
    """Compute the merged heads before the output projection, or None if no kernel applies."""
    context = head_contexts(target, query, memory, mask, position=position, offset=offset)
    return None if context is None else merge_heads(context, target.merge)


def _additive_terms(target: Attention, queries: Tensor) -> tuple[Tensor, Tensor]:
    """Return the terms of the queries [B, H, T, D], and v [D] or [H, D]."""
    scorers: list[AdditiveScorer] = list(target.scorers)  # type: ignore[arg-type]
    if len(scorers) == 1:
        return scorers[0].query_term(queries), scorers[0].vector()
    terms = [scorer.query_term(queries[:, h]) for h, scorer in enumerate(scorers)]
    return torch.stack(terms, dim=1), torch.stack([scorer.vector() for scorer in scorers])
