"""Decoder: a memory and the tokens so far to the next token's logits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component
from zoo.interfaces.data import Memory, State


class Decoder(Component, nn.Module, ABC):
    """Predicts each next token from the memory and the tokens before it.

    Given by the parent: embedding (the built target embedding), memory_dim, summary_dim, carry.

    Laws:
        step by step equals all at once (teacher forcing); causality: token t+1 cannot change
        the logits at t; a reordered state continues as its parent would have.
    """

    kind: ClassVar[str] = "decoder"

    def forward(self, targets: Tensor, memory: Memory) -> Tensor:
        """targets [B, T] -> logits of the token after each [B, T, V]."""
        logits, _ = self.step(targets, self.start(memory, steps=targets.shape[1]))
        return logits

    @abstractmethod
    def start(self, memory: Memory, *, steps: int) -> State:
        """The state before the first token; at most ``steps`` tokens will follow."""

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The next n tokens [B, n] -> their logits [B, n, V], and the state after them."""
