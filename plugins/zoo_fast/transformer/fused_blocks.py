"""Transformer blocks with the residual sum and the norm in one kernel.

Notation: B batch, T positions, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from zoo.acceleration import plain_class
from zoo.plugin import Acceleration, Attention, Call, Declined, Mask, Memory, Position
from zoo_fast.attention.fused_attention import (
    merged_context,
    why_not_additive,
    why_not_inner_product,
)
from zoo_fast.attention.joint_linear import split_bias
from zoo_fast.attention.joint_memory import prepare_memories
from zoo_fast.device.triton_support import why_not_triton_on
from zoo_fast.transformer.feed_forward import hidden_layer
from zoo_fast.transformer.residual import (
    draw_seeds,
    residual_norm,
    why_not_norm,
    why_not_residual_norm,
)
from zoo_transformer.block import Block, layer_list
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_transformer.transformer_encoder import TransformerEncoder

UpdateCache = Callable[[dict[str, Tensor]], Mapping[str, Tensor]]
Source = Tensor | Mapping[str, Tensor] | None


class FusedBlock(Acceleration):
    """Transformer block whose residual sums and norms after them are one kernel each."""

    name: ClassVar[str] = "fused-block"
    serves: ClassVar[type[Block]] = Block
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def why_not(self, target: Block, device: torch.device) -> str | None:
        return why_not_block(target) or why_not_triton_on(device.type)

    def forward(
        self,
        target: Block,
        x: Tensor,
        mask: Mask,
        *,
        position: Position | None,
        offset: int | Tensor = 0,
        update_cache: UpdateCache | None = None,
        memory: Source = None,
        memory_mask: Mask | None = None,
    ) -> Tensor | Declined:
        reason = why_not_residual_norm(x, target.attention_norm)
        if reason is not None:
            return Declined(reason)
        block = _FusedBlock(target, mask, position, offset, update_cache, memory, memory_mask)
        return block.run(x, x)[0]

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_fast.transformer.example_calls import block_calls

        yield from block_calls(dtype)


class EncoderBlocks(Acceleration):
    """Blocks of an encoder; the output of a block is passed on twice, for the next sublayer and its
    residual sum, so that a kernel adds their gradients."""

    name: ClassVar[str] = "encoder-blocks"
    serves: ClassVar[type[TransformerEncoder]] = TransformerEncoder
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def why_not(self, target: TransformerEncoder, device: torch.device) -> str | None:
        return _why_not_blocks(layer_list(target.blocks)) or why_not_triton_on(device.type)

    def run_blocks(self, target: TransformerEncoder, x: Tensor, mask: Mask) -> Tensor | Declined:
        blocks = layer_list(target.blocks) * (target.layers if target.share_layers else 1)
        reason = why_not_residual_norm(x, blocks[0].attention_norm)
        if reason is not None:
            return Declined(reason)
        residual = x
        for each in blocks:
            x, residual = _FusedBlock(each, mask, target.position).run(x, residual)
        return x

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_fast.transformer.example_calls import encoder_calls

        yield from encoder_calls(dtype)


class DecoderBlocks(Acceleration):
    """Blocks of a decoder, as `EncoderBlocks`; in training on a GPU, keys and values of all
    cross-attentions are one product."""

    name: ClassVar[str] = "decoder-blocks"
    serves: ClassVar[type[TransformerDecoder]] = TransformerDecoder
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def why_not(self, target: TransformerDecoder, device: torch.device) -> str | None:
        if target.memory_dim and device.type == "cuda" and torch.is_grad_enabled():
            return None
        return _why_not_blocks(layer_list(target.blocks)) or why_not_triton_on(device.type)

    def run_blocks(
        self, target: TransformerDecoder, x: Tensor, mask: Mask, memory: Memory
    ) -> Tensor | Declined:
        blocks = layer_list(target.blocks)
        sources: Sequence[Source] = [None] * len(blocks)
        if target.memory_dim:
            sources = prepare_memories([block.cross for block in blocks], memory.states)
        source_mask, residual = Mask(keys=memory.mask), x
        is_fused = _why_not_blocks(blocks) is None
        is_fused = is_fused and why_not_residual_norm(x, blocks[0].attention_norm) is None
        for block, source in zip(blocks, sources, strict=True):
            if is_fused:
                fused = _FusedBlock(block, mask, target.position, 0, None, source, source_mask)
                x, residual = fused.run(x, residual)
            else:
                x = block(x, mask, position=target.position, memory=source, memory_mask=source_mask)
        return x

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_fast.transformer.example_calls import biased_decoder_calls, decoder_calls

        for decoder, memory, tokens in (*decoder_calls(dtype), *biased_decoder_calls(dtype)):
            x = decoder.embed(tokens).detach()
            yield Call(decoder, (x, Mask(causal=True), memory), method="run_blocks")


def why_not_block(block: Block) -> str | None:
    """Return why residual sums and norms of a block are not one kernel, or None if they are."""
    if block.place != "post":
        return f"the place of the norms is '{block.place}', not 'post'"
    if block.attention_scale is not None:
        return "the sublayers have a layer scale"
    norms = [block.attention_norm, block.feed_forward_norm]
    norms += [block.cross_norm] if block.memory_dim else []
    reasons = (why_not_norm(norm) for norm in norms if norm is not None)
    return next((reason for reason in reasons if reason is not None), None)


def _why_not_blocks(blocks: Sequence[Block]) -> str | None:
    reasons = (why_not_block(block) for block in blocks)
    return next((reason for reason in reasons if reason is not None), None)


class _FusedBlock:
    """A call of a block with norms after its residual sums."""

    def __init__(
        self,
        block: Block,
        mask: Mask,
        position: Position | None,
        offset: int | Tensor = 0,
        update_cache: UpdateCache | None = None,
        memory: Source = None,
        memory_mask: Mask | None = None,
    ) -> None:
        self.block, self.offset = block, offset
        self.mask, self.position = block.restrict(mask), block.select_position(position)
        self.update_cache, self.memory, self.memory_mask = update_cache, memory, memory_mask

    def run(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """Process x [B, T, D]; residual is the same again. The output is returned twice, too."""
        block = self.block
        sublayers = [(self._attend, block.attention_norm)]
        if self.memory is not None:
            sublayers.append((self._attend_memory, block.cross_norm))
        assert block.feed_forward_norm is not None
        sublayers.append((self._feed_forward, block.feed_forward_norm))
        seeds: Sequence[Tensor | None] = [None] * len(sublayers)
        if block.dropout.training and block.dropout.p > 0:
            seeds = draw_seeds(len(sublayers), x)
        for (sublayer, norm), seed in zip(sublayers, seeds, strict=True):
            y, bias = sublayer(x)
            x, residual = residual_norm(residual, y, block.dropout, norm, bias, seed)
        return x, residual

    def _attend(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        attention = self.block.attention
        states: Tensor | Mapping[str, Tensor] = x
        if self.update_cache is not None:
            prepared = attention.prepare(x, position=self.position, offset=self.offset)
            states = self.update_cache(prepared)
        return _attend(attention, x, states, self.mask, self.position, self.offset)

    def _attend_memory(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        assert self.memory is not None
        return _attend(self.block.cross, x, self.memory, self.memory_mask, None, self.offset)

    def _feed_forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        network = self.block.feed_forward
        if plain_class(network) is not FeedForward:
            return network(x), None
        return split_bias(hidden_layer(network, x), network.down)


def _attend(
    attention: Attention,
    query: Tensor,
    memory: Tensor | Mapping[str, Tensor],
    mask: Mask | None,
    position: Position | None,
    offset: int | Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Return the context [B, T, D] and a bias that is not yet added to it."""
    if _is_known(attention):
        merged = merged_context(attention, query, memory, mask, position=position, offset=offset)
        if merged is not None:
            return split_bias(merged, attention.out)
    return attention(query, memory, mask, position=position, offset=offset).context, None


def _is_known(attention: Attention) -> bool:
    if plain_class(attention) is not Attention or attention.project == "none":
        return False
    return why_not_inner_product(attention) is None or why_not_additive(attention) is None
