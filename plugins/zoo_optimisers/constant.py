"""Constant learning rate."""

from typing import ClassVar

from zoo.plugin import FromParent, Schedule
from zoo_optimisers.warmup import Steps, check_warmup, warmup_factor


class Constant(Schedule):
    r"""Constant learning rate, after a linear warm-up.

    .. math:: f(t) = \min\Big(\frac{t}{w}, 1\Big)

    Paper: Goyal et al. 2017, section 2.2 (gradual warm-up).

    Args:
        steps: number of steps of the training.
        warmup: number of warm-up steps, w.

    Shapes:
        a step, an integer -> a factor, a float.
    """

    name: ClassVar[str] = "constant"
    paper: ClassVar[str] = (
        "Goyal et al. 2017, Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour, "
        "arXiv:1706.02677"
    )

    def __init__(self, *, steps: FromParent[int], warmup: Steps = 0) -> None:
        self.warmup = check_warmup(warmup, steps)

    def factor(self, step: int) -> float:
        return warmup_factor(step, self.warmup)
