"""Transformer blocks with the residual sum and the norm in one kernel.

Notation: B batch, T positions, D width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, Call, Declined, Mask, Memory, Position
from zoo_fast.attention.joint_memory import prepare_memories
from zoo_fast.device.triton_support import why_not_triton_on
from zoo_fast.transformer.fused_call import FusedCall, Source, UpdateCache, run_stack
from zoo_fast.transformer.residual import why_not_norm, why_not_residual_norm
from zoo_transformer.block import Block, layer_list
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_transformer.transformer_encoder import TransformerEncoder


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
        length: int | None = None,
        update_cache: UpdateCache | None = None,
        memory: Source = None,
        memory_mask: Mask | None = None,
    ) -> Tensor | Declined:
        reason = why_not_residual_norm(x, target.attention_norm)
        if reason is not None:
            return Declined(reason)
        length = x.shape[1] if length is None else length
        block = FusedCall(
            target, mask, position, offset, update_cache, memory, memory_mask, length=length
        )
        return run_stack([block], x)

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
        T = x.shape[1]
        calls = [FusedCall(each, mask, target.position, length=T) for each in blocks]
        return run_stack(calls, x)

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
        source_mask, position = Mask(keys=memory.mask), target.position
        is_fused = _why_not_blocks(blocks) is None
        if is_fused and why_not_residual_norm(x, blocks[0].attention_norm) is None:
            return run_stack(
                [
                    FusedCall(
                        block, mask, position, 0, None, source, source_mask, length=x.shape[1]
                    )
                    for block, source in zip(blocks, sources, strict=True)
                ],
                x,
            )
        for block, source in zip(blocks, sources, strict=True):
            x = block(x, mask, position=position, memory=source, memory_mask=source_mask)
        return x

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_fast.transformer.example_calls import biased_decoder_calls, decoder_calls

        for decoder, memory, tokens in (*decoder_calls(dtype), *biased_decoder_calls(dtype)):
            x = decoder.embed(tokens).detach()
            yield Call(decoder, (x, Mask(causal=True), memory), method="run_blocks")


def why_not_block(block: Block) -> str | None:
    """Return why residual sums and norms of a block are not one kernel, or None if they are."""
    if block.place not in ("pre", "post"):
        return f"the place of the norms is '{block.place}', not 'pre' or 'post'"
    if block.sublayers != "sequential":
        return f"the sublayers are '{block.sublayers}', not 'sequential'"
    if block.attention_scale is not None:
        return "the sublayers have a layer scale"
    norms = [block.attention_norm, block.feed_forward_norm]
    norms += [block.cross_norm] if block.memory_dim else []
    reasons = (why_not_norm(norm) for norm in norms if norm is not None)
    return next((reason for reason in reasons if reason is not None), None)


def _why_not_blocks(blocks: Sequence[Block]) -> str | None:
    reasons = (why_not_block(block) for block in blocks)
    return next((reason for reason in reasons if reason is not None), None)
