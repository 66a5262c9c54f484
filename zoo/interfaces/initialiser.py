"""Interface of initialisers, and the weights they initialise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from zoo.interfaces.component import Component

Role = Literal[
    "linear", "convolution", "recurrent", "embedding", "vector", "bias", "norm", "special"
]
"""The role of a parameter: the matrix of a linear layer, the kernel of a convolution, the matrix of
a recurrent connection, a table of vectors, a weight vector, a bias, the scale or shift of a norm,
or a parameter with its own initial values, which no initialiser changes."""

ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Weight:
    """A parameter of a model, with the properties that its initialisation depends on.

    Attributes:
        name: the name of the parameter in the model.
        tensor: the parameter, which is modified in place.
        role: the role of the parameter.
        kind: the kind of the innermost component that contains it.
        num_residual: the number of residual connections in the stack, if the layer's output is
            added to the residual stream; otherwise 0. A shared layer counts as often as it is
            applied.
        padding: the row of an embedding that is 0, if it has one.
    """

    name: str
    tensor: Tensor
    role: Role
    kind: str = "model"
    num_residual: int = 0
    padding: int | None = None


class Initialiser(Component, ABC):
    """Initialises the parameters of a model, one after the other, before training.

    The section ``init`` of a spec names an initialiser. `zoo.compose` calls it for each parameter
    once, after the model is built; it is not used when a model is loaded. A module declares the
    roles of its parameters in ``weight_roles`` and the layers whose outputs are added to the
    residual stream in ``residual_layers``, of which those that one name with ``*`` matches count as
    one; a module that applies its layers several times declares how often in ``residual_repeats``.

    Laws:
        a seed always gives the same values; all values of a weight with an `initial_std` are
        changed, and no others; padding rows are 0; values have the mean 0 and the declared
        standard deviation.
    """

    kind: ClassVar[str] = "initialiser"

    @abstractmethod
    def initial_std(self, weight: Weight) -> float | None:
        """Return the standard deviation of the initial values, or None to keep the values."""

    @abstractmethod
    def fill(self, weight: Weight) -> None:
        """Sample the values of ``weight.tensor`` in place; called without gradients."""

    def changes(self, weight: Weight) -> bool:
        """Return whether a weight is initialised: its role is not 'special', and it has a std."""
        return weight.role != "special" and self.initial_std(weight) is not None

    @torch.no_grad()
    def __call__(self, weight: Weight) -> None:
        """Initialise a weight if `changes` is true; a padding row becomes 0."""
        if self.changes(weight):
            self.fill(weight)
            if weight.padding is not None:
                weight.tensor[weight.padding].zero_()
