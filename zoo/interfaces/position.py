"""Position: information on the order of a sequence."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from zoo.interfaces.component import Component


class Position(Component, nn.Module, ABC):
    """Adds to states, rotates queries and keys, or adds a bias to scores.

    A position is called as a module with the name of the operation. A subclass overrides `add`,
    `rotate` or `bias`; the others do nothing.

    From the parent: dim, the width of the states; head_dim and heads of the attention.

    Laws:
        offset: positions o..o+n computed alone equal the slice of the whole.
    """

    kind: ClassVar[str] = "position"
    max_positions: int | None = None
    """How many positions there are, or None if there is no end."""
    is_rotary: ClassVar[bool] = False
    """Turns queries and keys, which only scorers that are plain inner products understand."""

    def forward(
        self,
        operation: Literal["add", "rotate", "bias"],
        states: Tensor,
        keys: Tensor | None = None,
        *,
        offset: int | Tensor = 0,
    ) -> Tensor | None:
        """Apply `add` or `rotate` to states, or return the `bias` of states (queries) and keys."""
        if operation == "add":
            return self.add(states, offset=offset)
        if operation == "rotate":
            return self.rotate(states, offset=offset)
        assert keys is not None
        return self.bias(states.shape[-2], keys.shape[-2], offset=offset, device=states.device)

    def add(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        """states [B, T, D] at positions offset..offset+T -> [B, T, D]."""
        return states

    def rotate(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        """queries or keys [B, H, T, D] at positions offset..offset+T -> [B, H, T, D]."""
        return states

    def bias(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> Tensor | None:
        """What is added to the scores of queries offset..offset+T and keys 0..S: [H, T, S]."""
        return None
