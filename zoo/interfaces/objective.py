"""Objective: what training makes small."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component
from zoo.interfaces.data import Outputs


class Objective(Component, nn.Module, ABC):
    """A loss over a model's outputs.

    Laws:
        equals its own brute-force reference on tiny cases; targets that do not count change
        nothing.
    """

    kind: ClassVar[str] = "objective"

    def examples(self) -> Sequence[Outputs]:
        """Tiny outputs for the laws, some of them padded, in float64; none if it takes what every
        objective takes: logits beside as many targets, with choices and without."""
        return ()

    @abstractmethod
    def forward(self, outputs: Outputs) -> Tensor:
        """The loss, one number."""

    @abstractmethod
    def reference(self, outputs: Outputs) -> float:
        """The same number, written as plainly as can be, for the law to compare with."""
