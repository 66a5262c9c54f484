"""Normal initialiser."""

import math
from typing import ClassVar, Literal

from zoo.plugin import Weight
from zoo_init.scheme import PositiveFloat, Scheme, fans


class Normal(Scheme):
    r"""Normal initialiser: the same normal distribution for all weights.

    .. math:: W \sim \mathcal{N}(0, \sigma^2), \qquad b = 0, \qquad
        W_{residual} \sim \mathcal{N}(0, \sigma^2 / N)

    Paper: Radford et al. 2019, section 2.3, for the scale of residual layers: N is the number of
    residual connections of a stack, two for each block of GPT-2.

    Args:
        std: standard deviation of the weights.
        scale_residual: whether to scale the layers before residual sums by 1 / sqrt(N).
        convolutions: 'same' samples convolutions as other weights, 'kaiming' with the variance
            2 / n_in (He et al. 2015), as wav2vec 2.0 does.
        embeddings: whether to sample embeddings; otherwise they keep their own initial values.

    Shapes:
        any weight, in place.
    """

    name: ClassVar[str] = "normal"
    paper: ClassVar[str] = (
        "Radford et al. 2019, Language Models are Unsupervised Multitask Learners"
    )

    def __init__(
        self,
        *,
        std: PositiveFloat = 0.02,
        scale_residual: bool = False,
        convolutions: Literal["same", "kaiming"] = "same",
        embeddings: bool = True,
    ) -> None:
        super().__init__(embeddings=embeddings)
        self.std, self.scale_residual, self.convolutions = std, scale_residual, convolutions

    def weight_std(self, weight: Weight) -> float:
        if weight.role == "convolution" and self.convolutions == "kaiming":
            return math.sqrt(2.0 / fans(weight.tensor)[0])
        if self.scale_residual and weight.num_residual:
            return self.std / math.sqrt(weight.num_residual)
        return self.std

    def sample(self, weight: Weight) -> None:
        weight.tensor.normal_(std=self.weight_std(weight))
