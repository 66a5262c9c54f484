"""Truncated normal initialiser."""

import math
from typing import ClassVar

from torch import nn

from zoo.plugin import Weight
from zoo_init.scheme import PositiveFloat, Scheme


class TruncatedNormal(Scheme):
    r"""Truncated normal initialiser: values beyond c standard deviations are sampled again.

    .. math:: W \sim \mathcal{N}(0, \sigma^2), \quad |W| \le c \sigma, \qquad b = 0

    Paper: the code of Devlin et al. 2019 (``truncated_normal_initializer`` with 0.02).

    Args:
        std: standard deviation of the distribution before it is truncated, sigma.
        cutoff: largest absolute value in standard deviations, c.
        embeddings: whether to sample embeddings; otherwise they keep their own initial values.

    Shapes:
        any weight, in place.
    """

    name: ClassVar[str] = "truncated-normal"
    paper: ClassVar[str] = (
        "Devlin et al. 2019, BERT: Pre-training of Deep Bidirectional Transformers for Language "
        "Understanding, arXiv:1810.04805"
    )

    def __init__(
        self, *, std: PositiveFloat = 0.02, cutoff: PositiveFloat = 2.0, embeddings: bool = True
    ) -> None:
        super().__init__(embeddings=embeddings)
        self.std, self.cutoff = std, cutoff

    def weight_std(self, weight: Weight) -> float:
        c = self.cutoff
        density = math.exp(-0.5 * c * c) / math.sqrt(2 * math.pi)
        return self.std * math.sqrt(1 - 2 * c * density / math.erf(c / math.sqrt(2)))

    def sample(self, weight: Weight) -> None:
        bound = self.cutoff * self.std
        nn.init.trunc_normal_(weight.tensor, std=self.std, a=-bound, b=bound)
