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
        """Whether the weights are the plain softmax of the masked scores, as a fused path needs."""
        return False

    @property
    def is_stochastic(self) -> bool:
        """Whether positions are sampled in training, so that scores get no gradient.

        `forward` of a stochastic alignment takes ``return_samples``; if it is true, it returns
        the weights and the log-probability and entropy of the samples ([..., T]).
        """
        return False

    @abstractmethod
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor | tuple[Tensor, Samples]:
        """scores [..., T, S], mask broadcastable to it (True = attend) -> weights [..., T, S].

        An attention passes scores [B, H, T, S] and a context.
        """
