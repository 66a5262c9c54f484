"""Decoding steps of one token on the CPU, with one call for the projections of self-attention.

Notation: R rows (hypotheses), N positions so far, H heads, D width of a head.
"""

import torch
from torch import Tensor, nn

from zoo.plugin import (
    Attention,
    Mask,
    PackedWeights,
    Position,
    State,
    fused_softmax,
    has_hooks,
    packed_weights,
)
from zoo_transformer.block import Block
from zoo_transformer.fused_step import why_not_attentions
from zoo_transformer.scaled_dot import ScaledDot


def weights_of_cpu_step(
    decoder: nn.Module, blocks: list[Block], position: Position | None
) -> PackedWeights | None:
    """Return the packed weights in use; None if the reference step is needed."""

    def is_supported() -> bool:
        has_bias = position is not None and position.has_bias
        is_observed = decoder.training or has_hooks(decoder)
        return not (has_bias or is_observed) and why_not_attentions(blocks) is None

    packed = packed_weights()
    return packed if packed is not None and packed.keep(decoder, is_supported) else None


def run_blocks(
    x: Tensor,
    state: State,
    blocks: list[Block],
    position: Position | None,
    offset: int,
    packed: PackedWeights,
) -> Tensor:
    """Process one token x [R, 1, dim] at the offset; the caches are updated in place."""
    source_mask = Mask(keys=state.per_source["mask"])
    for index, block in enumerate(blocks):
        keys, values = (state.per_hypothesis[f"{index}.{name}"] for name in ("keys", "values"))

        def attend(
            y: Tensor, a: Attention = block.attention, keys: Tensor = keys, values: Tensor = values
        ) -> Tensor:
            layers = [(each.weight, each.bias) for each in (a.query, a.key, a.value)]
            joint = packed.linear(y, *layers).view(
                len(y), -1, 1, a.head_dim
            )  # [R, H + 2 Hkv, 1, D]
            query, key, value = torch.split(joint, [a.heads, a.kv_heads, a.kv_heads], dim=1)
            if position is not None:
                query = position("rotate", query, offset=offset)
                key = position("rotate", key, offset=offset)
            keys[:, :, offset : offset + 1] = key
            values[:, :, offset : offset + 1] = value
            N = offset + 1
            return _context(a, query, keys[:, :, :N], values[:, :, :N], Mask(), packed)

        x = block.residual(x, attend, block.attention_norm)
        if block.memory_dim:
            keys, values = (state.per_source[f"{index}.{name}"] for name in ("keys", "values"))

            def attend_source(
                y: Tensor, a: Attention = block.cross, keys: Tensor = keys, values: Tensor = values
            ) -> Tensor:
                query = packed.linear(y, (a.query.weight, a.query.bias))
                query = query.view(len(y), a.heads, 1, a.head_dim)
                return _context(a, query, keys, values, source_mask, packed)

            x = block.residual(x, attend_source, block.cross_norm)
        x = block.residual(x, block.feed_forward, block.feed_forward_norm)
    return x


def _context(
    attention: Attention,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Mask,
    packed: PackedWeights,
) -> Tensor:
    """Attend with query [R, H, 1, D] and project the merged heads: [R, 1, dim]."""
    scorer = attention.scorers.first
    assert isinstance(scorer, ScaledDot)
    context = fused_softmax(query, keys, values, mask, scale=scorer.scale)
    out = attention.out
    return packed.linear(context.reshape(len(query), 1, -1), (out.weight, out.bias))
