"""Uniform initialiser."""

import math
from typing import ClassVar

from zoo.plugin import Weight
from zoo_init.scheme import PositiveFloat, Scheme


class Uniform(Scheme):
    r"""Uniform initialiser: the same uniform distribution for all weights and biases.

    .. math:: \theta \sim \mathcal{U}(-a, a)

    Paper: Sutskever et al. 2014, section 3.4, with a = 0.08.

    Args:
        bound: largest absolute value, a.
        biases: whether to sample biases; otherwise they are 0.
        embeddings: whether to sample embeddings; otherwise they keep their own initial values.

    Shapes:
        any weight, in place.
    """

    name: ClassVar[str] = "uniform"
    paper: ClassVar[str] = (
        "Sutskever et al. 2014, Sequence to Sequence Learning with Neural Networks, arXiv:1409.3215"
    )

    def __init__(
        self, *, bound: PositiveFloat = 0.08, biases: bool = True, embeddings: bool = True
    ) -> None:
        super().__init__(embeddings=embeddings)
        self.bound, self.biases = bound, biases

    def initial_std(self, weight: Weight) -> float | None:
        if weight.role == "bias" and self.biases:
            return self.weight_std(weight)
        return super().initial_std(weight)

    def fill(self, weight: Weight) -> None:
        if weight.role == "bias" and self.biases:
            self.sample(weight)
        else:
            super().fill(weight)

    def weight_std(self, weight: Weight) -> float:
        return self.bound / math.sqrt(3)

    def sample(self, weight: Weight) -> None:
        weight.tensor.uniform_(-self.bound, self.bound)
