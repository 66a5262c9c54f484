"""Base class of models with a source embedding and an encoder."""

import torch
from torch import Tensor

from zoo import Model
from zoo.plugin import Blueprint, Embedding, Encoder, Memory, forbid_stochastic


class EncoderModel(Model):
    """Model with a source embedding and an encoder."""

    def __init__(self, source: Blueprint[Embedding], encoder: Blueprint[Encoder]) -> None:
        super().__init__()
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")

    def encode(self, source: Tensor, valid: Tensor | None = None) -> Memory:
        """Encode the tokens [B, S]; those that are not valid [B, S] are padding."""
        mask = self.source.mask(source)
        mask = mask if valid is None else mask & valid
        memory: Memory = self.encoder(self.source(source), mask)
        return memory

    def get_embedding(self, side: str) -> Embedding:
        return self.source

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return {
            "source": self.source.example(batch, length, generator),
            "target": self.source.example(batch, length, generator),
        }
