"""AdamW."""

from collections.abc import Sequence
from typing import ClassVar

import torch

from zoo.plugin import Optimiser, Weight
from zoo_optimisers.groups import (
    Decay,
    Fraction,
    LearningRate,
    NonNegative,
    parameter_groups,
    supports_fused,
)


class AdamW(Optimiser):
    r"""AdamW: Adam with weight decay that is not part of the gradient, in one fused kernel.

    .. math::
        m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t, \qquad
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2

        \theta_t = (1 - \gamma \lambda)\, \theta_{t-1} - \gamma\,
            \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

    Paper: Loshchilov and Hutter 2019, algorithm 2. The decay is multiplied by the learning rate,
    as in torch, not by the factor of the schedule only.

    Args:
        lr: learning rate, gamma.
        betas: decay of the means of the gradient and of its square, beta.
        eps: added to the denominator, epsilon.
        weight_decay: weight decay, lambda.
        decay: parameters with weight decay: 'matrices' (also kernels of convolutions and
            embeddings, but not biases, norms and vectors) or 'all'.

    Shapes:
        parameters of any shape, in place.
    """

    name: ClassVar[str] = "adamw"
    paper: ClassVar[str] = (
        "Loshchilov and Hutter 2019, Decoupled Weight Decay Regularization, arXiv:1711.05101"
    )

    def __init__(
        self,
        *,
        lr: LearningRate = 1e-3,
        betas: tuple[Fraction, Fraction] = (0.9, 0.999),
        eps: NonNegative = 1e-8,
        weight_decay: NonNegative = 0.01,
        decay: Decay = "matrices",
    ) -> None:
        self.lr = lr
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.decay = decay

    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            parameter_groups(weights, self.weight_decay, self.decay),
            lr=self.lr,
            betas=self.betas,
            eps=self.eps,
            fused=supports_fused(weights),
        )
