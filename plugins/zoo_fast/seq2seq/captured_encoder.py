"""The encoder of generation with a sequence-to-sequence model, captured as a CUDA graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from zoo import Batch
from zoo.plugin import Acceleration, GenerationInputs
from zoo_fast.generation.captured_calls import call_captured
from zoo_fast.generation.tensors_by_name import flatten_memory, unflatten_memory
from zoo_seq2seq.seq2seq import Seq2Seq


class CapturedEncoder(Acceleration):
    """Replays the encoder from the third call with the same shapes on."""

    name: ClassVar[str] = "captured-encoder"
    serves: ClassVar[type[Seq2Seq]] = Seq2Seq

    def why_not(self, target: Seq2Seq, device: torch.device) -> str | None:
        return None if device.type == "cuda" else f"the device is '{device.type}', not 'cuda'"

    def prepare_generation(self, target: Seq2Seq, batch: Batch) -> GenerationInputs:
        vocab = target.vocab_size("source")  # a graph of fewer tokens is not started
        tensors, _ = call_captured(target, _encode, {"source": batch["source"]}, vocab)
        return target.generation_inputs(unflatten_memory(tensors), batch.get("prompt"))


def _encode(
    model: Seq2Seq, inputs: Mapping[str, Tensor], vocab: int
) -> tuple[dict[str, Tensor], None]:
    return flatten_memory(model.encode(inputs["source"])), None
