"""Decoding steps of one token on the CPU, with one call for the projections of self-attention.

Notation: R rows (hypotheses), N positions so far, H heads, D width of a head.
"""

from collections.abc import Callable

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
    """Process one token x [R, 1, dim] at the offset; the caches are updated in place.

    `forward` of norms and feed-forward networks is called directly: the step is used without hooks.
    """
    source_mask = Mask(keys=state.per_source["mask"]).simplified()
    for index, block in enumerate(blocks):

        def attend(y: Tensor, block: Block = block, index: int = index) -> Tensor:
            return _self_attention(block.attention, y, state, index, position, offset, packed)

        def attend_source(y: Tensor, block: Block = block, index: int = index) -> Tensor:
            a = block.cross
            keys, values = (state.per_source[f"{index}.{name}"] for name in ("keys", "values"))
            query = packed.linear(y, (a.query.weight, a.query.bias))
            query = query.view(-1, a.heads, 1, a.head_dim)
            return _context(a, query, keys, values, source_mask, packed)

        def feed_forward(y: Tensor, block: Block = block) -> Tensor:
            output = block.feed_forward.forward(y)
            assert isinstance(output, Tensor)
            return output

        sublayers: list[tuple[Callable[[Tensor], Tensor], nn.Module]]
        sublayers = [(attend, block.attention_norm)]
        if block.memory_dim:
            sublayers.append((attend_source, block.cross_norm))
        sublayers.append((feed_forward, block.feed_forward_norm))
        for sublayer, norm in sublayers:
            x = x + sublayer(norm.forward(x)) if block.pre else norm.forward(x + sublayer(x))
    return x


def _self_attention(
    attention: Attention,
    x: Tensor,
    state: State,
    index: int,
    position: Position | None,
    offset: int,
    packed: PackedWeights,
) -> Tensor:
    """Attend from x [R, 1, dim] to all positions so far, after its key and value are cached."""
    layers = [(e.weight, e.bias) for e in (attention.query, attention.key, attention.value)]
    joint = packed.linear(x, *layers)
    joint = joint.view(joint.shape[0], -1, 1, attention.head_dim)  # [R, H + 2 Hkv, 1, D]
    groups = attention.kv_heads
    query, key, value = joint.split_with_sizes([attention.heads, groups, groups], dim=1)
    if position is not None and position.is_rotary:
        query = position("rotate", query, offset=offset)
        key = position("rotate", key, offset=offset)
    keys, values = (state.per_hypothesis[f"{index}.{name}"] for name in ("keys", "values"))
    keys.narrow(2, offset, 1).copy_(key)
    values.narrow(2, offset, 1).copy_(value)
    N = offset + 1
    return _context(attention, query, keys.narrow(2, 0, N), values.narrow(2, 0, N), Mask(), packed)


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
    return packed.linear(context.reshape(query.shape[0], 1, -1), (out.weight, out.bias))
