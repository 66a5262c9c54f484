"""Calls of attentions for the laws of accelerations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from zoo.attention.heads import QueryKeyNorm
from zoo.plugin import Attention, Blueprint, Call, Mask, Position, Scorer
from zoo_alignment.soft import Soft
from zoo_positions.alibi import ALiBi
from zoo_positions.disentangled import Disentangled
from zoo_positions.gated import Gated

DIM = 8


def attention_calls(scorer: type[Scorer], dtype: torch.dtype, **params: Any) -> Iterator[Call]:
    """Yield calls with several heads and masks, one query, one key and masked rows."""
    attention = build_attention(scorer, dtype, heads=2, project="qkv", **params)
    query, memory = _states(2, 3, dtype), _states(2, 5, dtype)
    keys = torch.ones(2, 5, dtype=torch.bool)
    keys[1, 2:] = False
    for mask in (None, Mask(keys=keys), Mask(keys=keys & keys[:, :1].logical_not())):
        yield Call(attention, (query, memory, mask))
    causal = Mask(causal=True, bias=torch.randn(2, 3, 3).to(dtype))
    yield Call(attention, (query, query, causal))
    yield Call(attention, (query, query, Mask(causal=True)))
    yield Call(attention, (query[:, :1], memory, Mask(keys=keys)))
    yield Call(attention, (query, memory[:, :1]))
    single = build_attention(scorer, dtype, **params)
    yield Call(single, (query, memory, Mask(keys=keys)))
    grouped = build_attention(scorer, dtype, heads=4, kv_heads=2, project="qkv", **params)
    yield Call(grouped, (query, memory, Mask(causal=True, offset=2)))
    for kind, over in (("rms", "head"), ("rms", "all"), ("rms-plus-one", "head")):
        norm = Blueprint.of(QueryKeyNorm, kind=kind, over=over)
        normed = build_attention(scorer, dtype, heads=2, project="qkv", norm=norm, **params)
        yield Call(normed, (query, query, Mask(causal=True)))
    for position in _positions(scorer):
        biased = build_attention(scorer, dtype, heads=2, project="qkv", **params)
        biased.set_position(position.to(dtype))
        biased.to(dtype)
        options = {"position": position, "offset": 2}
        yield Call(biased, (query, biased.prepare(memory), Mask(keys=keys)), options)


def build_attention(
    scorer: type[Scorer], dtype: torch.dtype, *, heads: int = 1, **params: Any
) -> Attention:
    """Build an attention with softmax weights, in evaluation mode."""
    options = {name: params.pop(name) for name in ("project", "kv_heads", "norm") if name in params}
    blueprint = Blueprint.of(
        Attention,
        scorer=Blueprint.of(scorer, **params),
        align=Blueprint.of(Soft),
        heads=heads,
        **options,
    )
    return blueprint.build(query_dim=DIM, key_dim=DIM).to(dtype).eval()


def _positions(scorer: type[Scorer]) -> Iterator[Position]:
    """Yield positions with a bias that depends on queries and keys."""
    widths: dict[str, Any] = {"dim": DIM, "heads": 2, "head_dim": DIM // 2}
    yield Gated(**widths, causal=False, position=Blueprint.of(ALiBi))
    if scorer.supports_rotary:
        yield Disentangled(**widths, max_distance=4, shared=True)


def _states(batch: int, length: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(batch, length, DIM).to(dtype)
