"""Linear decay."""

from typing import ClassVar

from zoo.plugin import FromParent, Schedule
from zoo_optimisers.warmup import Share, Steps, check_warmup, progress, warmup_factor


class Linear(Schedule):
    r"""Linear decay to ``end`` at the end of the training, after a linear warm-up to 1.

    .. math::
        f(t) = \frac{t}{w} \ \text{for}\ t \le w, \qquad
        f(t) = 1 - (1 - e)\, \frac{t - 1 - w}{N - w} \ \text{for}\ t > w

    No step has the factor 0: the value e is that of the step after the last.

    Paper: Devlin et al. 2019, appendix A.2.

    Args:
        steps: number of steps of the training, N.
        warmup: number of warm-up steps, w.
        end: factor at the end, e.

    Shapes:
        a step, an integer -> a factor, a float.
    """

    name: ClassVar[str] = "linear"
    paper: ClassVar[str] = (
        "Devlin et al. 2019, BERT: Pre-training of Deep Bidirectional Transformers, "
        "arXiv:1810.04805"
    )

    def __init__(self, *, steps: FromParent[int], warmup: Steps = 0, end: Share = 0.0) -> None:
        self.steps = steps
        self.warmup = check_warmup(warmup, steps)
        self.end = end

    def factor(self, step: int) -> float:
        decay = 1 - (1 - self.end) * progress(step, self.warmup, self.steps)
        return warmup_factor(step, self.warmup) * decay
