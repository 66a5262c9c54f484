"""Adam."""

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


class Adam(Optimiser):
    r"""Adam, with optional L2 regularisation, in one fused kernel.

    .. math::
        g_t = \nabla L(\theta_{t-1}) + \lambda \theta_{t-1}, \qquad
        m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t, \qquad
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2

        \theta_t = \theta_{t-1} - \gamma\,
            \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

    Paper: Kingma and Ba 2015, algorithm 1. The Transformer (Vaswani et al. 2017, section 5.3) uses
    betas 0.9 and 0.98 and eps 1e-9; GAT (Velickovic et al. 2018, section 3.3) L2 regularisation
    with 0.0005.

    Args:
        lr: learning rate, gamma.
        betas: decay of the means of the gradient and of its square, beta.
        eps: added to the denominator, epsilon.
        weight_decay: weight of the L2 regularisation, lambda.
        decay: parameters with L2 regularisation: 'matrices' (also kernels of convolutions and
            embeddings, but not biases, norms and vectors) or 'all'.

    Shapes:
        parameters of any shape, in place.
    """

    name: ClassVar[str] = "adam"
    paper: ClassVar[str] = (
        "Kingma and Ba 2015, Adam: A Method for Stochastic Optimization, arXiv:1412.6980"
    )

    def __init__(
        self,
        *,
        lr: LearningRate = 1e-3,
        betas: tuple[Fraction, Fraction] = (0.9, 0.999),
        eps: NonNegative = 1e-8,
        weight_decay: NonNegative = 0.0,
        decay: Decay = "matrices",
    ) -> None:
        self.lr = lr
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.decay = decay

    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return torch.optim.Adam(
            parameter_groups(weights, self.weight_decay, self.decay),
            lr=self.lr,
            betas=self.betas,
            eps=self.eps,
            fused=supports_fused(weights),
        )
