"""Stochastic gradient descent."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch

from zoo.plugin import InvalidParameter, Optimiser, Weight
from zoo_optimisers.groups import (
    Decay,
    Fraction,
    LearningRate,
    NonNegative,
    is_on_cuda,
    parameter_groups,
)


class Sgd(Optimiser):
    r"""Stochastic gradient descent, with optional momentum.

    .. math::
        g_t = \nabla L(\theta_{t-1}) + \lambda \theta_{t-1}, \qquad
        b_t = \mu b_{t-1} + g_t, \qquad
        \theta_t = \theta_{t-1} - \gamma\, b_t

    With ``nesterov`` the update is g_t + mu b_t instead of b_t.

    Paper: Sutskever et al. 2013, equations 1 to 4. As in torch, the learning rate multiplies the
    momentum buffer, so a change of the learning rate has an immediate effect.

    Args:
        lr: learning rate, gamma.
        momentum: decay of the momentum buffer, mu.
        nesterov: whether to use Nesterov's momentum.
        weight_decay: weight of the L2 regularisation, lambda.
        decay: parameters with L2 regularisation: 'matrices' (also kernels of convolutions and
            embeddings, but not biases, norms and vectors) or 'all'.

    Shapes:
        parameters of any shape, in place.
    """

    name: ClassVar[str] = "sgd"
    paper: ClassVar[str] = (
        "Sutskever et al. 2013, On the importance of initialization and momentum in deep learning"
    )
    test_params: ClassVar[Mapping[str, Any]] = {"lr": 0.01, "momentum": 0.5}

    def __init__(
        self,
        *,
        lr: LearningRate,
        momentum: Fraction = 0.0,
        nesterov: bool = False,
        weight_decay: NonNegative = 0.0,
        decay: Decay = "matrices",
    ) -> None:
        if nesterov and momentum == 0:
            raise InvalidParameter(
                "nesterov", "nesterov is true, but momentum is 0; set momentum, for example to 0.9"
            )
        self.lr = lr
        self.momentum = momentum
        self.nesterov = nesterov
        self.weight_decay = weight_decay
        self.decay = decay

    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return torch.optim.SGD(
            parameter_groups(weights, self.weight_decay, self.decay),
            lr=self.lr,
            momentum=self.momentum,
            nesterov=self.nesterov,
            fused=True if is_on_cuda(weights) else None,
        )
