"""Interface of optimisers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch

from zoo.interfaces.component import Component
from zoo.interfaces.initialiser import Weight


class Optimiser(Component, ABC):
    """Creates a torch optimiser for the parameters of a model.

    Laws:
        a step decreases the loss of a quadratic function; each weight is updated if it has a
        gradient, and does not change without one; the learning rate of the groups is `lr`, and
        with a learning rate of 0 no weight changes; an optimiser restored from the state of its
        parameters, tensors and JSON values, continues with the same steps.

    Attributes:
        lr: the learning rate, which a schedule multiplies.
    """

    kind: ClassVar[str] = "optimiser"
    lr: float

    @abstractmethod
    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        """Return a torch optimiser for the parameters, which are on their final device.

        The role of a weight decides, for example, whether it has weight decay. Parameters keep
        their order within each group. Pass them with their names, ``[(weight.name,
        weight.tensor)]``, so that the state has the names.
        """
