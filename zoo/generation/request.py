"""Options of a decoding call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from zoo.errors import ZooError
from zoo.interfaces import Component, Filter, Sampler

MAX_LENGTH = 10_000_000
"""The tensor of the tokens is allocated before the first step."""


@dataclass(frozen=True, kw_only=True)
class DecodeRequest:
    """Options of `decode` and `stream_tokens`.

    Args:
        sampler: selects the next tokens.
        max_length: maximum number of new tokens, including the end token.
        filters: applied in this order to the next-token scores, before the sampler.
        generator: random generator of the sampler, on the device of the memory.
    """

    sampler: Sampler
    max_length: int
    filters: Sequence[Filter] = ()
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.sampler, Component):
            found = type(self.sampler).__name__
            raise ZooError(
                f"sampler is of type {found}; expected a Sampler, for example that of a spec: "
                "zoo.load_spec(spec).sections.sampler.build()"
            )
        if not 1 <= self.max_length <= MAX_LENGTH:
            raise ZooError(f"max_length is {self.max_length}; it must be from 1 to {MAX_LENGTH:,}")
