"""Decay in steps."""

from typing import Annotated, ClassVar

from pydantic import Field

from zoo.plugin import Schedule
from zoo_optimisers.warmup import Steps


class Step(Schedule):
    r"""Multiplies the learning rate by ``factor`` after ``start`` steps and then regularly.

    .. math::
        f(t) = \gamma^{n(t)}, \qquad
        n(t) = \Big\lfloor \frac{t - 1 - s}{k} \Big\rfloor + 1 \ \text{for}\ t > s, \ \text{else}\ 0

    Paper: Sutskever et al. 2014, section 3.4: after 5 epochs, halved every half epoch; Luong et al.
    2015, section 4.1: after 5 epochs, halved every epoch.

    Args:
        every: number of steps between reductions, k.
        start: number of steps before the first reduction, s; default: ``every``.
        factor: factor of each reduction, gamma.

    Shapes:
        a step, an integer -> a factor, a float.
    """

    name: ClassVar[str] = "step"
    paper: ClassVar[str] = (
        "Sutskever et al. 2014, Sequence to Sequence Learning with Neural Networks, arXiv:1409.3215"
    )

    def __init__(
        self,
        *,
        every: Annotated[int, Field(ge=1)],
        start: Steps | None = None,
        factor: Annotated[float, Field(gt=0, le=1)] = 0.5,
    ) -> None:
        self.every = every
        self.start = every if start is None else start
        self.gamma = factor

    def factor(self, step: int) -> float:
        reductions = (step - 1 - self.start) // self.every + 1
        return float(self.gamma ** max(reductions, 0))
