"""Kaiming normal initialiser."""

import math
from typing import ClassVar

from torch import nn

from zoo.plugin import Weight
from zoo_init.scheme import Scheme, as_matrix, fans


class KaimingNormal(Scheme):
    r"""Kaiming normal initialiser, for layers followed by a ReLU.

    .. math:: W \sim \mathcal{N}(0, 2 / n_{in}), \qquad b = 0

    Paper: He et al. 2015, equation 10.

    Args:
        embeddings: whether to sample embeddings too, as matrices [V, D].

    Shapes:
        any weight, in place.
    """

    name: ClassVar[str] = "kaiming-normal"
    paper: ClassVar[str] = (
        "He et al. 2015, Delving Deep into Rectifiers: Surpassing Human-Level Performance on "
        "ImageNet Classification, arXiv:1502.01852"
    )

    def __init__(self, *, embeddings: bool = False) -> None:
        super().__init__(embeddings=embeddings)

    def weight_std(self, weight: Weight) -> float:
        return math.sqrt(2.0 / fans(weight.tensor)[0])

    def sample(self, weight: Weight) -> None:
        nn.init.kaiming_normal_(as_matrix(weight.tensor))
