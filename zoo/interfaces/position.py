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
    `add`, `rotate` or `bias`; the other operations have no effect. For a bias that depends on the
    content of queries and keys, it overrides `build_score_bias`, and `relative` for what all
    attentions share.

    From the parent: dim (width of the states), heads and head_dim of the attention, causal.

    Laws:
        offset: the result for n states from position o on equals positions o to o + n - 1 of the
        result for the full sequence; restarted-positions: `add` also takes an offset of each state;
        score-bias: the bias of an attention depends on the offset in the same way, has the shape
        [B, H, T, S], and does not mix the items of a batch.
    """

    kind: ClassVar[str] = "position"
    max_positions: int | None = None
    """Maximum number of positions, or None if unlimited."""
    is_rotary: bool = False
    """Whether it rotates queries and keys, which requires a scorer with `supports_rotary`."""
    requires_inner_product: bool = False
    """Whether its score bias requires a scorer with `supports_rotary`."""
    switch_lengths: tuple[int, ...] = ()
    """Lengths above which texts are rotated in another way, at all positions; see `for_length`."""

    def for_length(self, length: int) -> Position:
        """Return the position that rotates queries and keys of texts of ``length`` tokens."""
        return self

    @property
    def has_bias(self) -> bool:
        """Whether it adds a bias to the scores, the same for all attentions."""
        return type(self).bias is not Position.bias

    @property
    def has_score_bias(self) -> bool:
        """Whether each attention has a bias that depends on its queries or keys."""
        return type(self).build_score_bias is not Position.build_score_bias

    def forward(
        self,
        operation: Literal["add", "rotate", "bias", "relative"],
        states: Tensor,
        keys: Tensor | None = None,
        *,
        offset: int | Tensor = 0,
    ) -> Tensor | tuple[Tensor, ...] | None:
        """Apply `add` or `rotate` to states, or return the `bias`, or what is `relative`, of states
        (queries) and keys."""
        if operation == "add":
            return self.add(states, offset=offset)
        if operation == "rotate":
            return self.rotate(states, offset=offset)
        assert keys is not None
        compute = self.bias if operation == "bias" else self.relative
        return compute(states.shape[-2], keys.shape[-2], offset=offset, device=states.device)

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

    def relative(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> tuple[Tensor, ...]:
        """Return the tensors that the score biases of all attentions share."""
        return ()

    def build_score_bias(self, query_dim: int) -> nn.Module | None:
        """Build the bias of one attention that depends on its queries or keys, or return None.

        ``query_dim`` is the width of the attention's inputs, D. The module has the parameters of
        one attention. It is called with the attention, this position, the inputs of the queries
        [B, T, D], queries [B, H, T, d], keys [B, H, S, d] and ``offset``, and returns the bias
        [B, H, T, S]. Positions are those of `bias`.
        """
        return None
