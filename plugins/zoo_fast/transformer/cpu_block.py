"""Transformer blocks in evaluation on the CPU: sums and activations in place, no calls of modules.

New memory of the size of a hidden layer costs as much on the CPU as an activation, and the calls of
the modules of a small block as much as its products.

Notation: B batch, T positions, S keys, H heads, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.acceleration import plain_class
from zoo.attention.attention import add_position_bias
from zoo.attention.heads import Linear, split_heads
from zoo.plugin import Acceleration, Attention, Call, Declined, Mask, Position
from zoo_fast.attention.fused_attention import why_not_inner_product
from zoo_fast.attention.fused_softmax import fused_softmax
from zoo_fast.attention.score_forms import prepared_scale
from zoo_fast.device import packed_linear
from zoo_fast.transformer.block_dropout import why_not_block_dropout
from zoo_fast.transformer.fused_call import Source, UpdateCache
from zoo_transformer.block import Block
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.layer_scale import scale_output

Sublayer = Callable[[Tensor], Tensor]
_LINEAR = (Linear, nn.Linear)


class CpuBlock(Acceleration):
    """Block in evaluation on the CPU, with sums and activations in place."""

    name: ClassVar[str] = "cpu-block"
    serves: ClassVar[type[Block]] = Block

    def why_not(self, target: Block, device: torch.device) -> str | None:
        if device.type != "cpu":
            return f"the device is '{device.type}', not 'cpu'"
        if target.training:
            return "the block is in training mode"
        attentions = (target.attention, *((target.cross,) if target.memory_dim else ()))
        for attention in attentions:
            reason = _why_not_attention(attention)
            if reason is not None:
                return reason
        return _why_not_feed_forward(target.feed_forward) or why_not_block_dropout(target)

    def forward(
        self,
        target: Block,
        x: Tensor,
        mask: Mask,
        *,
        position: Position | None,
        offset: int | Tensor = 0,
        length: int | None = None,
        update_cache: UpdateCache | None = None,
        memory: Source = None,
        memory_mask: Mask | None = None,
    ) -> Tensor | Declined:
        if type(x) is not Tensor:  # a subclass may not support operations in place
            return Declined(f"the states are a {type(x).__name__}")
        mask = target.restrict(mask)
        position = target.select_position(position, x.shape[1] if length is None else length)

        def attend_self(y: Tensor) -> Tensor:
            prepared: Mapping[str, Tensor]
            prepared = own = _prepare(target.attention, y, position, offset)
            if update_cache is not None:
                prepared = update_cache(own)
            output = _attend(target.attention, y, prepared, mask, position, offset)
            return scale_output(target.attention_scale, output)

        def attend_memory(y: Tensor) -> Tensor:
            assert memory is not None
            prepared = memory
            if isinstance(prepared, Tensor):
                prepared = _prepare(target.cross, prepared, None, offset)
            output = _attend(target.cross, y, prepared, memory_mask, None, offset)
            return scale_output(target.cross_scale, output)

        def feed(y: Tensor) -> Tensor:
            return scale_output(target.feed_forward_scale, feed_forward(target.feed_forward, y))

        cross = None if memory is None else attend_memory
        return run_block(target, x, attend_self, cross, feed)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_fast.transformer.example_calls import block_calls

        for call in block_calls(dtype):
            call.target.eval()
            yield call


def run_block(
    block: Block, x: Tensor, attend: Sublayer, attend_memory: Sublayer | None, feed: Sublayer
) -> Tensor:
    """Compute a block in evaluation, given its sublayers, whose outputs are overwritten."""
    if block.sublayers != "sequential":
        normed = _norm(block.attention_norm, x)
        second = normed
        if block.feed_forward_norm is not None:
            second = _norm(block.feed_forward_norm, x)
        return attend(normed).add_(x).add_(feed(second))
    x = _residual(block, x, attend, block.attention_norm, block.attention_output_norm)
    if attend_memory is not None:
        x = _residual(block, x, attend_memory, block.cross_norm, block.cross_output_norm)
    assert block.feed_forward_norm is not None
    return _residual(block, x, feed, block.feed_forward_norm, block.feed_forward_output_norm)


def feed_forward(network: FeedForward, x: Tensor) -> Tensor:
    """Compute a feed-forward network without hooks and gradients."""
    hidden = _linear(network.up, x)
    if network.gate is None:
        hidden = _activate(network, hidden)
    else:
        hidden = _activate(network, _linear(network.gate, x)).mul_(hidden)
    return _linear(network.down, hidden)


def _residual(
    block: Block, x: Tensor, sublayer: Sublayer, norm: nn.Module, output_norm: nn.Module | None
) -> Tensor:
    """Compute `Block.residual` in evaluation, without hooks; overwrites the sublayer's output."""
    if block.place == "post":
        return _norm(norm, sublayer(x).add_(x))
    output = sublayer(x if block.place == "output" else _norm(norm, x))
    last = norm if block.place == "output" else output_norm
    return (output if last is None else _norm(last, output)).add_(x)


def _prepare(
    attention: Attention, states: Tensor, position: Position | None, offset: int | Tensor
) -> dict[str, Tensor]:
    """Compute `Attention.prepare` without hooks."""
    keys = split_heads(_linear(attention.key, states), attention.kv_heads)
    values = split_heads(_linear(attention.value, states), attention.kv_heads)
    return attention.prepare_heads(keys, values, position, offset)


def _attend(
    attention: Attention,
    query: Tensor,
    prepared: Mapping[str, Tensor],
    mask: Mask | None,
    position: Position | None,
    offset: int | Tensor,
) -> Tensor:
    """Compute the projected context [B, T, D] of an attention without hooks."""
    keys, values = prepared["keys"], prepared["values"]  # [B, Hkv, S, D]
    queries = split_heads(_linear(attention.query, query), attention.heads)
    queries = attention.prepare_queries(queries, position, offset)  # [B, H, T, D]
    mask = add_position_bias(attention, mask, position, query, queries, keys, offset)
    scale = prepared_scale(attention.scorers.first)
    assert scale is not None
    context = fused_softmax(queries, keys, values, mask, scale=scale)
    return _linear(attention.out, context.transpose(1, 2).flatten(2))


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    return packed_linear.linear(x, layer.weight, layer.bias)


def _norm(norm: nn.Module, x: Tensor) -> Tensor:
    normed: Tensor = plain_class(norm).forward(norm, x)
    return normed


def _activate(network: FeedForward, x: Tensor) -> Tensor:
    """Compute the activation in place, if torch has such an operation."""
    if network.activation == "relu":
        return torch.relu_(x)
    if network.activation == "silu":
        return F.silu(x, inplace=True)
    if network.activation == "quick-gelu":
        return network.activate(x)
    approximate = "tanh" if network.activation == "gelu-tanh" else "none"
    result: Tensor = torch.ops.aten.gelu_(x, approximate=approximate)
    return result


def _why_not_attention(attention: Attention) -> str | None:
    if plain_class(attention) is not Attention or attention.project != "qkv":
        return "the attention has no projections of queries, keys and values, or is not known"
    if attention.merge != "concat":
        return "the heads are averaged"
    layers = attention.query, attention.key, attention.value, attention.out
    if any(plain_class(layer) not in _LINEAR for layer in layers):
        return "a projection is not a linear layer"
    return why_not_inner_product(attention)


def _why_not_feed_forward(network: nn.Module) -> str | None:
    if plain_class(network) is not FeedForward:
        return f"{type(network).__name__} is not known"
    layers = network.up, network.gate, network.down
    if any(layer is not None and plain_class(layer) not in _LINEAR for layer in layers):
        return "the feed-forward network has a layer that is not linear"
    return None
