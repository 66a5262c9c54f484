"""Blocks of a Transformer in evaluation, captured as CUDA graphs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from zoo.interfaces.module_parts import each_part
from zoo.plugin import Acceleration, Declined, Mask, Memory, reference
from zoo_fast.generation.captured_calls import Inspected, inspect_module, replay_captured
from zoo_fast.transformer.fused_blocks import DecoderBlocks, EncoderBlocks
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_transformer.transformer_encoder import TransformerEncoder

MAX_ELEMENTS = 2**22
"""Larger inputs are not captured: the device is then slower than the launches."""


class _CapturedBlocks(Acceleration):
    order: ClassVar[int] = -1

    def why_not(self, target: nn.Module, device: torch.device) -> str | None:
        if device.type != "cuda":
            return f"the device is '{device.type}', not 'cuda'"
        return "the module is in training mode" if target.training else None


class CapturedEncoderBlocks(_CapturedBlocks):
    """Replays the blocks of an encoder without the time of launches, from the third call with the
    same shapes on."""

    name: ClassVar[str] = "captured-encoder-blocks"
    serves: ClassVar[type[TransformerEncoder]] = TransformerEncoder

    def run_blocks(self, target: TransformerEncoder, x: Tensor, mask: Mask) -> Tensor | Declined:
        return _run_captured(target, _encode, x, mask, {})


class CapturedDecoderBlocks(_CapturedBlocks):
    """Replays the blocks of a decoder, as `CapturedEncoderBlocks`."""

    name: ClassVar[str] = "captured-decoder-blocks"
    serves: ClassVar[type[TransformerDecoder]] = TransformerDecoder

    def run_blocks(
        self, target: TransformerDecoder, x: Tensor, mask: Mask, memory: Memory
    ) -> Tensor | Declined:
        source = {"memory.states": memory.states, "memory.mask": memory.mask}
        return _run_captured(target, _decode, x, mask, source)


def _run_captured(
    target: nn.Module, function: Any, x: Tensor, mask: Mask, source: Mapping[str, Tensor]
) -> Tensor | Declined:
    if x.numel() > MAX_ELEMENTS or x.numel() == 0:
        return Declined(f"the shape is {list(x.shape)}")
    if torch.cuda.current_stream() != torch.cuda.default_stream():
        return Declined("the stream is not the default one")
    tensors, settings = _split(mask)

    def inspect() -> Inspected:
        reason, weights = inspect_module(target, x.device)
        if reason is not None:
            return reason, None
        parts = each_part(target)
        if any(part.training for part in parts):  # a dropout layer, which draws numbers
            return "a part is in training mode", None
        return None, (weights, tuple(map(_settings, parts)))

    given = {"x": x, **{f"mask.{name}": t for name, t in tensors.items()}, **source}
    outputs = replay_captured(target, function, given, settings, inspect=inspect)
    return outputs if isinstance(outputs, Declined) else outputs[0]["x"]


def _split(mask: Mask) -> tuple[dict[str, Tensor], tuple[tuple[str, Hashable], ...]]:
    """Return the tensors of a mask and its other fields."""
    values = {field.name: getattr(mask, field.name) for field in fields(mask) if field.init}
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    return tensors, tuple((name, value) for name, value in values.items() if name not in tensors)


def _join(inputs: Mapping[str, Tensor], settings: tuple[tuple[str, Any], ...]) -> Mask:
    prefix = "mask."
    values: dict[str, Any] = dict(settings)
    values |= {n.removeprefix(prefix): t for n, t in inputs.items() if n.startswith(prefix)}
    return Mask(**values)


def _settings(part: nn.Module) -> Hashable:
    """Return the class and the numbers and names of a part, on which its computation depends."""
    values = (value for value in part.__dict__.values() if type(value) in (int, float, bool, str))
    return type(part), *values


def _encode(
    encoder: TransformerEncoder, inputs: Mapping[str, Tensor], settings: tuple[Any, ...]
) -> tuple[dict[str, Tensor], None]:
    arguments = inputs["x"], _join(inputs, settings)
    return {"x": _run(encoder, EncoderBlocks(), arguments)}, None


def _decode(
    decoder: TransformerDecoder, inputs: Mapping[str, Tensor], settings: tuple[Any, ...]
) -> tuple[dict[str, Tensor], None]:
    states, mask = inputs["memory.states"], inputs["memory.mask"]
    memory = Memory(states, mask, states[:, 0] if states.shape[1] else states.sum(dim=1))
    arguments = inputs["x"], _join(inputs, settings), memory
    return {"x": _run(decoder, DecoderBlocks(), arguments)}, None


def _run(target: nn.Module, fused: Any, arguments: tuple[Any, ...]) -> Tensor:
    """Run the blocks with fused kernels where they apply."""
    output: Any = Declined("")
    if fused.why_not(target, arguments[0].device) is None:
        output = fused.run_blocks(target, *arguments)
    if isinstance(output, Declined):
        output = reference(target, "run_blocks")(*arguments)
    return output  # type: ignore[no-any-return]
