"""Xavier normal initialiser."""

from typing import ClassVar

from torch import nn

from zoo.plugin import Weight
from zoo_init.scheme import as_matrix
from zoo_init.xavier_uniform import XavierUniform


class XavierNormal(XavierUniform):
    r"""Xavier normal initialiser: a normal distribution with a variance that depends on the fans.

    .. math:: W \sim \mathcal{N}(0, \sigma^2), \qquad
        \sigma = g \sqrt{2 / (n_{in} + n_{out})}, \qquad b = 0

    Paper: Glorot and Bengio 2010, equation 12.

    Args:
        gain: factor g of all weights.
        embeddings: whether to sample embeddings too, as matrices [V, D].

    Shapes:
        any weight, in place.
    """

    name: ClassVar[str] = "xavier-normal"

    def sample(self, weight: Weight) -> None:
        nn.init.xavier_normal_(as_matrix(weight.tensor), self.gain)
