"""Embedding: raw inputs to vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces.component import Component


class Embedding(Component, nn.Module, ABC):
    """Turns inputs into a sequence of vectors.

    Laws:
        padding is inert: what stands at a masked position changes no other vector, and the
        vector of a padded position is zero.

    Attributes:
        dim: width of the vectors.
        vocab: how many symbols there are, or None where inputs are not symbols.
        padding: the symbol that stands for nothing, or None.
    """

    kind: ClassVar[str] = "embedding"
    widths: ClassVar[tuple[str, ...]] = ("dim",)

    dim: int
    vocab: int | None = None
    padding: int | None = None

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """inputs [B, S, ...] -> vectors [B, S, D]."""

    @abstractmethod
    def mask(self, inputs: Tensor) -> Tensor:
        """inputs [B, S, ...] -> [B, S], True where an input is real."""

    def validate_special_tokens(self, *, bos: int | None, eos: int | Sequence[int]) -> int:
        """What stands after the end, in a vocabulary with these symbols to begin and end with.

        It is the padding or, where there is none, the (first) end symbol again.
        """
        if self.vocab is None:
            raise ZooError(f"embedding '{self.name}' has no vocabulary to speak in")
        eos_ids = to_eos_ids(eos)
        for name, token in (("bos", bos), *(("eos", end) for end in eos_ids)):
            if token is not None and token >= self.vocab:
                raise ZooError(f"{name} ({token}) must be a symbol below vocab ({self.vocab})")
        if self.padding in eos_ids:
            raise ZooError(f"eos ({eos}) must be another symbol than padding ({self.padding})")
        return eos_ids[0] if self.padding is None else self.padding

    def unembed(self, states: Tensor) -> Tensor:
        """Logits by the embedding's own table: states [..., D] -> [..., V]."""
        raise ZooError(f"embedding '{self.name}' has no table that an output could share")

    @abstractmethod
    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        """Random inputs of this embedding, none of them padding: [B, S, ...]."""


def to_eos_ids(eos: int | Collection[int]) -> tuple[int, ...]:
    """The symbols that end a text, of which most vocabularies have one."""
    return (eos,) if isinstance(eos, int) else tuple(eos)
