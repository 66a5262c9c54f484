"""A model that has read its input, let loose."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from zoo.generation.loop import decode
from zoo.interfaces import Decoded, Filter, Sampler, Speech


def speak(
    speech: Speech,
    sampler: Sampler,
    *,
    max_length: int,
    generator: torch.Generator | None = None,
    filters: Sequence[Filter] = (),
) -> Decoded:
    """What `decode` gives for a model's speech."""
    return decode(
        speech.decoder,
        speech.memory,
        sampler,
        bos=speech.bos,
        eos=speech.eos,
        pad=speech.pad,
        prompt=speech.prompt,
        lengths=speech.lengths,
        max_length=max_length,
        generator=generator,
        filters=filters,
    )
