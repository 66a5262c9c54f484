"""Decoding steps of one token on the CPU, with packed weights and one call for the projections of
self-attention.

Notation: R rows (hypotheses), N positions so far, H heads, D width of a head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar
from weakref import ref

import torch
from torch import Tensor

from zoo.attention.heads import norm_heads
from zoo.plugin import Acceleration, Attention, Call, Declined, Mask, Position, State
from zoo_fast.attention.fused_softmax import fused_softmax
from zoo_fast.attention.masks import without_full_keys
from zoo_fast.device.packed_linear import PackedWeights, packed_weights
from zoo_fast.transformer.cached_state import CachedState
from zoo_fast.transformer.cpu_block import feed_forward, run_block
from zoo_fast.transformer.fused_step import why_not_blocks
from zoo_transformer.block import Block, layer_list
from zoo_transformer.transformer_decoder import TransformerDecoder


class PackedDecoding(Acceleration):
    """Decoding steps of one token on the CPU, inside `PackedWeights.use`."""

    name: ClassVar[str] = "packed-decoding"
    serves: ClassVar[type[TransformerDecoder]] = TransformerDecoder
    order: ClassVar[int] = 1

    def __init__(self) -> None:
        self._checked: Callable[[], PackedWeights | None] = lambda: None
        self._reason: str | None = None

    def why_not(self, target: TransformerDecoder, device: torch.device) -> str | None:
        if device.type != "cpu":
            return f"the device is '{device.type}', not 'cpu'"
        if target.training:
            return "the decoder is in training mode"
        packed = packed_weights()
        if packed is None:
            return "no packed weights are in use"
        if self._checked() is not packed:  # once per generation, because it takes time
            self._checked, self._reason = ref(packed), self._why_not_parts(target)
        return self._reason

    def _why_not_parts(self, target: TransformerDecoder) -> str | None:
        for position in (target.position, *(each.position for each in layer_list(target.blocks))):
            if position is not None and position.has_bias:
                return f"position '{position.name}' adds a bias to the scores"
        return why_not_blocks(target)

    def step(
        self, target: TransformerDecoder, tokens: Tensor, state: State
    ) -> tuple[Tensor, State] | Declined:
        packed = packed_weights()
        assert packed is not None
        if tokens.shape[1] != 1 or isinstance(state, CachedState):
            return Declined(f"there are {tokens.shape[1]} tokens, or the state is that of kernels")
        at = state.per_hypothesis["at"]
        offset = int(at[0])
        x = target.embed(tokens, offset)
        blocks = _Blocks(state, target.position, offset, packed)
        for index, block in enumerate(layer_list(target.blocks)):
            x = blocks.run(index, block, x)
        return target.logits(x), state.updated({**state.per_hypothesis, "at": at + 1})

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_fast.transformer.example_calls import decoder_calls, normed_decoder_calls

        for decoder, memory, tokens in (*decoder_calls(dtype), *normed_decoder_calls(dtype)):
            # The packed weights are in use until the next case.
            with torch.no_grad(), PackedWeights().use():
                state = decoder.start(memory, steps=3)
                yield Call(decoder, (tokens[:, :1], state), method="step")

    def tensors(self, output: Any) -> list[Tensor]:
        logits, state = output
        return [logits, *(tensor for _, tensor in sorted(state.per_hypothesis.items()))]


class _Blocks:
    """Blocks of a decoder for one token at an offset; the caches are updated in place.

    Modules are not called: the step is used without hooks.
    """

    def __init__(
        self, state: State, position: Position | None, offset: int, packed: PackedWeights
    ) -> None:
        self.caches: Mapping[str, Tensor] = state.per_hypothesis
        self.sources: Mapping[str, Tensor] = state.per_source
        self.mask = without_full_keys(Mask(keys=self.sources["mask"]))
        self.position, self.offset, self.packed = position, offset, packed
        self.length = self.caches["0.keys"].shape[2]

    def run(self, index: int, block: Block, x: Tensor) -> Tensor:
        """Process one token x [R, 1, dim]."""

        def attend(y: Tensor) -> Tensor:
            return self._attend(index, block, y)

        def attend_source(y: Tensor) -> Tensor:
            return self._attend_source(index, block.cross, y)

        cross = attend_source if block.memory_dim else None
        return run_block(block, x, attend, cross, partial(feed_forward, block.feed_forward))

    def _attend(self, index: int, block: Block, x: Tensor) -> Tensor:
        """Attend from x [R, 1, dim] to the positions so far, after its key and value are cached."""
        attention, position = block.attention, block.select_position(self.position, self.length)
        layers = [(e.weight, e.bias) for e in (attention.query, attention.key, attention.value)]
        joint = self.packed.linear(x, *layers)
        joint = joint.view(joint.shape[0], -1, 1, attention.head_dim)  # [R, H + 2 Hkv, 1, D]
        groups = attention.kv_heads
        query, key, value = joint.split_with_sizes([attention.heads, groups, groups], dim=1)
        query, key = norm_heads(query, attention.query_norm), norm_heads(key, attention.key_norm)
        if position is not None and position.is_rotary:
            query = position("rotate", query, offset=self.offset)
            key = position("rotate", key, offset=self.offset)
        keys, values = (self.caches[f"{index}.{name}"] for name in ("keys", "values"))
        keys.narrow(2, self.offset, 1).copy_(key)
        values.narrow(2, self.offset, 1).copy_(value)
        N = self.offset + 1 if block.window is None else min(self.offset + 1, block.window)
        keys, values = (part.narrow(2, self.offset + 1 - N, N) for part in (keys, values))
        return self._context(attention, query, keys, values, Mask())

    def _attend_source(self, index: int, attention: Attention, x: Tensor) -> Tensor:
        keys, values = (self.sources[f"{index}.{name}"] for name in ("keys", "values"))
        query = self.packed.linear(x, (attention.query.weight, attention.query.bias))
        query = query.view(-1, attention.heads, 1, attention.head_dim)
        query = norm_heads(query, attention.query_norm)
        return self._context(attention, query, keys, values, self.mask)

    def _context(
        self, attention: Attention, query: Tensor, keys: Tensor, values: Tensor, mask: Mask
    ) -> Tensor:
        """Attend with query [R, H, 1, D] and project the merged heads: [R, 1, dim]."""
        scale: float = attention.scorers.first.scale  # type: ignore[assignment]
        context = fused_softmax(query, keys, values, mask, scale=scale)
        out = attention.out
        return self.packed.linear(context.reshape(query.shape[0], 1, -1), (out.weight, out.bias))
