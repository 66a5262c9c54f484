"""The encoder of generation with a sequence-to-sequence model, captured as a CUDA graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import Batch
from zoo.acceleration import plain_class
from zoo.plugin import Acceleration, GenerationInputs, Memory
from zoo_fast.generation.captured_calls import call_captured, why_not_parts
from zoo_fast.generation.lengths import lengths_vary, source_length, source_limit
from zoo_fast.generation.tensors_by_name import flatten_memory, unflatten_memory
from zoo_seq2seq.seq2seq import Seq2Seq
from zoo_tokens.token import Token


class CapturedEncoder(Acceleration):
    """Replays the encoder from the third call with the same shapes on.

    If the sources of tokens have many lengths, they are padded, so that those of similar length
    share a graph.
    """

    name: ClassVar[str] = "captured-encoder"
    serves: ClassVar[type[Seq2Seq]] = Seq2Seq

    def why_not(self, target: Seq2Seq, device: torch.device) -> str | None:
        return None if device.type == "cuda" else f"the device is '{device.type}', not 'cuda'"

    def prepare_generation(self, target: Seq2Seq, batch: Batch) -> GenerationInputs:
        vocab = target.vocab_size("source")  # a graph of fewer tokens is not started
        source = padded = batch["source"]
        varying = lengths_vary(target, source.device, source.shape[1])
        if varying and why_not_parts(target) is None:
            padded = pad_source(target, source)
        tensors, _ = call_captured(target, _encode, {"source": padded}, vocab)
        memory = _shorten(unflatten_memory(tensors), source.shape[1])
        return target.generation_inputs(memory, batch.get("prompt"))


def pad_source(model: Seq2Seq, source: Tensor) -> Tensor:
    """Return a source [B, S] of tokens with padding up to a length that graphs share, if the
    encoder accepts it."""
    padding, limit = model.source.padding, source_limit(model.encoder)
    if plain_class(model.source) is not Token or source.dim() != 2:
        return source  # other embeddings can have a limit, or segments
    if padding is None or limit is None:
        return source
    S, length = source.shape[1], source_length(source.shape[1])
    if S in (0, length) or length > limit:
        return source
    if model.source.input_schema().suffix:  # padding that ends a text is valid
        return source
    return F.pad(source, (0, length - S), value=padding)


def _shorten(memory: Memory, length: int) -> Memory:
    """Return the memory of the first states."""
    if memory.mask.shape[1] == length:
        return memory
    tokens = None if memory.tokens is None else memory.tokens[:, :length]
    states, mask = memory.states[:, :length], memory.mask[:, :length]
    return replace(memory, states=states, mask=mask, tokens=tokens)


def _encode(
    model: Seq2Seq, inputs: Mapping[str, Tensor], vocab: int
) -> tuple[dict[str, Tensor], None]:
    return flatten_memory(model.encode(inputs["source"])), None
