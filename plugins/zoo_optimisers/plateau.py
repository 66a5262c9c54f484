"""Decay when evaluations stop improving."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from zoo.plugin import FromParent, Schedule
from zoo_optimisers.warmup import Share, Steps, check_warmup, warmup_factor


class Plateau(Schedule):
    r"""Multiplies the learning rate by ``factor`` when evaluations do not improve.

    .. math:: f \leftarrow \max(\gamma f, e) \ \text{after more than p evaluations without}\
        v < v_{best} - \epsilon\, |v_{best}|

    Paper: He et al. 2016, section 3.4: the learning rate is divided by 10 when the error plateaus.
    The factor changes only at evaluations, so the training needs validation data.

    Args:
        steps: number of steps of the training.
        factor: factor of each reduction, gamma.
        patience: number of evaluations without an improvement that are ignored, p.
        threshold: minimum relative improvement, epsilon.
        floor: minimum of the product of all reductions, e.
        warmup: number of steps of a linear warm-up to 1.

    Shapes:
        a step, an integer -> a factor, a float.
    """

    name: ClassVar[str] = "plateau"
    paper: ClassVar[str] = (
        "He et al. 2016, Deep Residual Learning for Image Recognition, arXiv:1512.03385"
    )

    def __init__(
        self,
        *,
        steps: FromParent[int],
        factor: Annotated[float, Field(gt=0, lt=1)] = 0.1,
        patience: Annotated[int, Field(ge=0)] = 10,
        threshold: Share = 1e-4,
        floor: Share = 0.0,
        warmup: Steps = 0,
    ) -> None:
        self.gamma = factor
        self.patience = patience
        self.threshold = threshold
        self.floor = floor
        self.warmup = check_warmup(warmup, steps)
        self._best: float | None = None
        self._reduced = 1.0
        self._num_bad = 0

    def factor(self, step: int) -> float:
        return warmup_factor(step, self.warmup) * self._reduced

    def observe(self, value: float) -> None:
        best = self._best
        if math.isfinite(value) and (best is None or value < best - self.threshold * abs(best)):
            self._best, self._num_bad = value, 0
            return
        self._num_bad += 1
        if self._num_bad > self.patience:
            self._reduced, self._num_bad = max(self._reduced * self.gamma, self.floor), 0

    def begin_phase(self) -> None:
        self._best, self._num_bad = None, 0

    def state(self) -> Mapping[str, Any]:
        return {"best": self._best, "reduced": self._reduced, "num_bad": self._num_bad}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._best, self._reduced, self._num_bad = state["best"], state["reduced"], state["num_bad"]
