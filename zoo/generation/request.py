"""Options of a decoding call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from zoo.errors import ZooError
from zoo.interfaces import Filter, Sampler


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
        if self.max_length < 1:
            raise ZooError(f"max_length is {self.max_length}; it must be at least 1")
