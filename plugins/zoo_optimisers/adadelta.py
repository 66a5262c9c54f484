"""Adadelta."""

from collections.abc import Sequence
from typing import ClassVar

import torch

from zoo.plugin import Optimiser, Weight
from zoo_optimisers.groups import Decay, Fraction, LearningRate, NonNegative, parameter_groups


class Adadelta(Optimiser):
    r"""Adadelta: steps in proportion to the mean size of previous steps.

    .. math::
        v_t = \rho v_{t-1} + (1 - \rho) g_t^2, \qquad
        \Delta_t = \frac{\sqrt{u_{t-1} + \epsilon}}{\sqrt{v_t + \epsilon}}\, g_t

        u_t = \rho u_{t-1} + (1 - \rho) \Delta_t^2, \qquad
        \theta_t = \theta_{t-1} - \gamma \Delta_t

    Paper: Zeiler 2012, algorithm 1, where the learning rate is 1. The defaults are those of
    Bahdanau et al. 2015, appendix B.2.

    Args:
        lr: learning rate, gamma.
        rho: decay of the means of squares, rho.
        eps: added to the means of squares, epsilon.
        weight_decay: weight of the L2 regularisation, added to the gradient.
        decay: parameters with L2 regularisation: 'matrices' (also kernels of convolutions and
            embeddings, but not biases, norms and vectors) or 'all'.

    Shapes:
        parameters of any shape, in place.
    """

    name: ClassVar[str] = "adadelta"
    paper: ClassVar[str] = (
        "Zeiler 2012, ADADELTA: An Adaptive Learning Rate Method, arXiv:1212.5701"
    )

    def __init__(
        self,
        *,
        lr: LearningRate = 1.0,
        rho: Fraction = 0.95,
        eps: NonNegative = 1e-6,
        weight_decay: NonNegative = 0.0,
        decay: Decay = "matrices",
    ) -> None:
        self.lr = lr
        self.rho = rho
        self.eps = eps
        self.weight_decay = weight_decay
        self.decay = decay

    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        groups = parameter_groups(weights, self.weight_decay, self.decay)
        return torch.optim.Adadelta(groups, lr=self.lr, rho=self.rho, eps=self.eps)
