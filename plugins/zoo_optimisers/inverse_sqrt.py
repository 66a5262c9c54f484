"""The schedule of the Transformer."""

import math
from typing import Annotated, ClassVar

from pydantic import Field

from zoo.plugin import FromParent, Schedule
from zoo_optimisers.warmup import check_warmup


class InverseSqrt(Schedule):
    r"""Inverse square root of the step, after a linear warm-up to 1.

    .. math::
        f(t) = \min\Big(\frac{t}{w}, \sqrt{\frac{w}{t}}\Big), \qquad
        \text{with dim:}\ f(t) = d^{-0.5} \min\big(t^{-0.5}, t\, w^{-1.5}\big)

    Paper: Vaswani et al. 2017, equation 3, which is the form with ``dim`` and the learning rate 1.
    Both forms are the same with the learning rate (d w)^-0.5 in the first.

    Args:
        steps: number of steps of the training.
        warmup: number of warm-up steps, w.
        dim: width of the model, d, for the form of the paper.

    Shapes:
        a step, an integer -> a factor, a float.
    """

    name: ClassVar[str] = "inverse-sqrt"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"

    def __init__(
        self,
        *,
        steps: FromParent[int],
        warmup: Annotated[int, Field(ge=1)] = 4000,
        dim: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        self.warmup = check_warmup(warmup, steps)
        self.dim = dim

    def factor(self, step: int) -> float:
        value = min(step / self.warmup, math.sqrt(self.warmup / step))
        return value if self.dim is None else value / math.sqrt(self.dim * self.warmup)
