"""Objective: what training makes small."""

from __future__ import annotations

from abc import ABC, abstractmethod
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

    @abstractmethod
    def forward(self, outputs: Outputs) -> Tensor:
        """The loss, one number."""

    @abstractmethod
    def reference(self, outputs: Outputs) -> float:
        """The same number, written as plainly as can be, for the law to compare with."""
