"""Alignment: scores to attention weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component


class Alignment(Component, nn.Module, ABC):
    """Turns scores into the weights with which values are mixed.

    Given by the parent: query_dim.

    Laws:
        weights are never negative; a masked key gets exactly 0 and cannot influence the others;
        a row sums to 1; a fully masked row gives zeros, never NaN.

    Attributes:
        is_softmax: the weights are the plain softmax of the masked scores, so that a scorer's
            fused path may stand in.
    """

    kind: ClassVar[str] = "alignment"
    is_softmax: ClassVar[bool] = False

    @abstractmethod
    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        """scores [..., T, S], mask broadcastable to it (True = open) -> weights [..., T, S]."""
