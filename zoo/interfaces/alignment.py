"""Alignment: scores to attention weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component
from zoo.interfaces.data import AlignmentContext, Samples


class Alignment(Component, nn.Module, ABC):
    """Turns scores into the weights with which values are mixed.

    Given by the parent: query_dim.

    Laws:
        weights are never negative; a masked key gets exactly 0 and cannot influence the others;
        a row sums to 1 (to at most 1 if not normalised); a fully masked row gives zeros, never
        NaN; queries one by one get what they get all at once.
    """

    kind: ClassVar[str] = "alignment"
    normalised: ClassVar[bool] = True
    """Rows sum to 1."""
    sequential: ClassVar[bool] = False
    """Needs the weights of the step before, so queries must come one by one."""
    needs_step_index: ClassVar[bool] = False
    """Needs to know how many queries came before."""

    @property
    def is_softmax(self) -> bool:
        """The weights are, now, the plain softmax of the masked scores, so that a scorer's fused
        path may stand in."""
        return False

    @property
    def is_stochastic(self) -> bool:
        """It draws, in training, where to look, and no gradient tells the scores of it; `sample`
        says how likely the draw was, so that an objective can."""
        return False

    @abstractmethod
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        """scores [..., T, S], mask broadcastable to it (True = open) -> weights [..., T, S].

        An attention always gives a look, and then scores are [B, H, T, S].
        """

    def sample(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> tuple[Tensor, Samples]:
        """What `forward` does, and how it was drawn: weights [..., T, S], choices [..., T]."""
        raise NotImplementedError(f"alignment '{self.name}' draws nothing")
