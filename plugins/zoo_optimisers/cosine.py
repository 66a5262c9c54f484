"""Cosine decay."""

import math
from typing import ClassVar

from zoo.plugin import FromParent, Schedule
from zoo_optimisers.warmup import Share, Steps, check_warmup, progress, warmup_factor


class Cosine(Schedule):
    r"""Half a period of a cosine from 1 to ``floor``, after a linear warm-up to 1.

    .. math::
        f(t) = \frac{t}{w} \ \text{for}\ t \le w, \qquad
        f(t) = e + \frac{1 - e}{2} \Big(1 + \cos \pi \frac{t - 1 - w}{N - w}\Big)
            \ \text{for}\ t > w

    No step has the factor 0: the value e is that of the step after the last.

    Paper: Loshchilov and Hutter 2017, equation 5, without restarts.

    Args:
        steps: number of steps of the training, N.
        warmup: number of warm-up steps, w.
        floor: factor at the end, e.

    Shapes:
        a step, an integer -> a factor, a float.
    """

    name: ClassVar[str] = "cosine"
    paper: ClassVar[str] = (
        "Loshchilov and Hutter 2017, SGDR: Stochastic Gradient Descent with Warm Restarts, "
        "arXiv:1608.03983"
    )

    def __init__(self, *, steps: FromParent[int], warmup: Steps = 0, floor: Share = 0.0) -> None:
        self.steps = steps
        self.warmup = check_warmup(warmup, steps)
        self.floor = floor

    def factor(self, step: int) -> float:
        angle = math.pi * progress(step, self.warmup, self.steps)
        decay = self.floor + (1 - self.floor) * (1 + math.cos(angle)) / 2
        return warmup_factor(step, self.warmup) * decay
