"""RMSprop."""

from collections.abc import Sequence
from typing import ClassVar

import torch

from zoo.plugin import Optimiser, Weight
from zoo_optimisers.groups import Decay, Fraction, LearningRate, NonNegative, parameter_groups


class RmsProp(Optimiser):
    r"""RMSprop: gradients divided by the root of their mean square.

    .. math::
        v_t = \alpha v_{t-1} + (1 - \alpha) g_t^2, \qquad
        b_t = \mu b_{t-1} + \frac{g_t}{\sqrt{v_t} + \epsilon}, \qquad
        \theta_t = \theta_{t-1} - \gamma\, b_t

    With ``centered`` the square of the mean gradient is subtracted from v_t.

    Paper: Tieleman and Hinton 2012; Graves 2013, equations 38 to 41, with alpha 0.95, momentum 0.9,
    lr 0.0001 and ``centered``, as used for neural Turing machines. In his equations epsilon is
    inside the root; here, as in torch, it is added to the root.

    Args:
        lr: learning rate, gamma.
        alpha: decay of the means, alpha.
        eps: added to the root, epsilon.
        momentum: decay of the momentum buffer, mu.
        centered: whether to divide by the standard deviation instead of the root mean square.
        weight_decay: weight of the L2 regularisation, added to the gradient.
        decay: parameters with L2 regularisation: 'matrices' (also kernels of convolutions and
            embeddings, but not biases, norms and vectors) or 'all'.

    Shapes:
        parameters of any shape, in place.
    """

    name: ClassVar[str] = "rmsprop"
    paper: ClassVar[str] = (
        "Tieleman and Hinton 2012, Lecture 6.5: RMSprop, Neural Networks for Machine Learning"
    )

    def __init__(
        self,
        *,
        lr: LearningRate = 1e-3,
        alpha: Fraction = 0.95,
        eps: NonNegative = 1e-8,
        momentum: Fraction = 0.0,
        centered: bool = False,
        weight_decay: NonNegative = 0.0,
        decay: Decay = "matrices",
    ) -> None:
        self.lr = lr
        self.alpha = alpha
        self.eps = eps
        self.momentum = momentum
        self.centered = centered
        self.weight_decay = weight_decay
        self.decay = decay

    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return torch.optim.RMSprop(
            parameter_groups(weights, self.weight_decay, self.decay),
            lr=self.lr,
            alpha=self.alpha,
            eps=self.eps,
            momentum=self.momentum,
            centered=self.centered,
        )
