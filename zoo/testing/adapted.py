"""A small model with modules of each type, to which the laws attach adapters."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo.attention import Attention
from zoo.attention.heads import Linear
from zoo.interfaces import Batch, Model, Outputs
from zoo.registry.blueprint import Blueprint
from zoo.testing.tiny import TinyAlignment, TinyScorer


class _FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = Linear(6, 5)
        self.down = Linear(5, 6, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.down(self.up(x).tanh())
        return output


class AdaptedModel(Model):
    """An embedding table, an attention, a feed-forward network, a norm and an output layer.

    Shapes:
        tokens [B, T] -> logits [B, T, 4].
    """

    name: ClassVar[str] = "adapted"

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 6, padding_idx=0)
        self.attention = Attention(
            query_dim=6,
            key_dim=6,
            scorer=Blueprint.of(TinyScorer),
            align=Blueprint.of(TinyAlignment),
            heads=2,
        )
        self.feed_forward = _FeedForward()
        self.norm = nn.LayerNorm(6)
        self.out = Linear(6, 4)

    def forward(self, batch: Batch) -> Outputs:
        tokens = batch["tokens"]
        x = self.table(tokens)
        x = x + self.attention(x, x).context
        x = self.norm(x + self.feed_forward(x))
        return Outputs(self.out(x), tokens % 4, tokens != 0)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return {"tokens": torch.arange(batch * length).view(batch, length) % 7}
