"""Xavier uniform initialiser."""

import math
from typing import ClassVar

from torch import nn

from zoo.plugin import Weight
from zoo_init.scheme import PositiveFloat, Scheme, as_matrix, fans


class XavierUniform(Scheme):
    r"""Xavier uniform initialiser: a uniform distribution with a variance that depends on the fans.

    .. math:: W \sim \mathcal{U}(-a, a), \qquad a = g \sqrt{6 / (n_{in} + n_{out})}, \qquad b = 0

    Paper: Glorot and Bengio 2010, equation 16; also 'uniform_unit_scaling' of tensor2tensor, the
    code of Vaswani et al. 2017.

    Args:
        gain: factor g of all weights.
        embeddings: whether to sample embeddings too, as matrices [V, D].

    Shapes:
        any weight, in place.
    """

    name: ClassVar[str] = "xavier-uniform"
    paper: ClassVar[str] = (
        "Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward neural "
        "networks, AISTATS"
    )

    def __init__(self, *, gain: PositiveFloat = 1.0, embeddings: bool = False) -> None:
        super().__init__(embeddings=embeddings)
        self.gain = gain

    def weight_std(self, weight: Weight) -> float:
        return self.gain * math.sqrt(2.0 / sum(fans(weight.tensor)))

    def sample(self, weight: Weight) -> None:
        nn.init.xavier_uniform_(as_matrix(weight.tensor), self.gain)
