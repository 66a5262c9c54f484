"""A model that has read its input, let loose."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from zoo.generation.loop import decode
from zoo.interfaces import Filter, GenerationInputs, GenerationOutput, Sampler


def speak(
    generation_inputs: GenerationInputs,
    sampler: Sampler,
    *,
    max_length: int,
    generator: torch.Generator | None = None,
    filters: Sequence[Filter] = (),
) -> GenerationOutput:
    """What `decode` gives for a model's speech."""
    return decode(
        generation_inputs.decoder,
        generation_inputs.memory,
        sampler,
        bos=generation_inputs.bos,
        eos=generation_inputs.eos,
        pad=generation_inputs.pad,
        prompt=generation_inputs.prompt,
        lengths=generation_inputs.lengths,
        max_length=max_length,
        generator=generator,
        filters=filters,
    )
