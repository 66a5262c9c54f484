"""Position: where a vector stands in its sequence."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo.interfaces.component import Component


class Position(Component, nn.Module, ABC):
    """Adds to states, rotates queries and keys, or biases scores; overrides what it does.

    Given by the parent: dim, the width of the states; head_dim and heads of the attention.

    Laws:
        offset: positions o..o+n computed alone equal the slice of the whole.
    """

    kind: ClassVar[str] = "position"
    traced_method: ClassVar[str] = "add"
    max_positions: int | None = None
    """How many positions there are, or None if there is no end."""
    is_rotary: ClassVar[bool] = False
    """Turns queries and keys, which only scorers that are plain inner products understand."""

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
