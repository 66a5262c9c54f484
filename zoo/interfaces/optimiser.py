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
        a step decreases the loss of a quadratic function; the state can be saved and restored
        with safetensors: it is tensors and numbers only; parameters without a gradient do not
        change.

    Attributes:
        lr: the learning rate, which a schedule multiplies.
    """

    kind: ClassVar[str] = "optimiser"
    lr: float

    @abstractmethod
    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        """Return a torch optimiser for the parameters, in this order.

        The role of a weight decides, for example, whether it has weight decay.
        """
