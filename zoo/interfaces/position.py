"""Interface of position encodings."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from zoo.interfaces.component import Component


class Position(Component, nn.Module, ABC):
    """Encodes positions: adds to states, rotates queries and keys, or adds a bias to scores.

    A position encoding is called as a module with the name of the operation. A subclass overrides
    `add`, `rotate` or `bias`; the other operations have no effect.

    From the parent: dim (width of the states), heads and head_dim of the attention, causal.

    Laws:
        offset: the result for n states from position o on equals positions o to o + n - 1 of the
        result for the full sequence; `add` also takes an offset of each state.
    """

    kind: ClassVar[str] = "position"
    max_positions: int | None = None
    """Maximum number of positions, or None if unlimited."""
    is_rotary: bool = False
    """Whether it rotates queries and keys, which requires a scorer with `supports_rotary`."""

    @property
    def has_bias(self) -> bool:
        """Whether it adds a bias to the scores."""
        return type(self).bias is not Position.bias

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
        """Add positions offset to offset + T - 1 to states [B, T, D]; with an offset [B, T], state
        t has position t + offset[:, t]."""
        return states

    def rotate(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        """Rotate queries or keys [B, H, T, D] at positions offset to offset + T - 1."""
        return states

    def bias(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> Tensor | None:
        """Return the bias [H, T, S] of the scores.

        Queries have positions offset to offset + T - 1, keys 0 to S - 1.
        """
        return None
