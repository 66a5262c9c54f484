"""Interface of learning rate schedules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from zoo.interfaces.component import Component


class Schedule(Component, ABC):
    """Computes the factor of the learning rate at each step.

    The constructor may declare ``steps: FromParent[int]``, the number of steps of the training.

    Laws:
        factors are finite and not negative, also after the last step; the factor of a step does
        not depend on previous calls of `factor`; a schedule restored from its state, JSON values,
        continues with the same factors.
    """

    kind: ClassVar[str] = "schedule"

    @abstractmethod
    def factor(self, step: int) -> float:
        """Return the factor of the learning rate at a step; the first step is 1."""

    def observe(self, value: float) -> None:
        """Take the result of an evaluation, lower is better; for schedules that depend on it.

        Called before the next `factor`. A value of which higher is better is passed negated, and
        one that is not a finite number as infinity, which is never an improvement.
        """

    def begin_phase(self) -> None:
        """Forget the results of evaluations: the model has changed, and they are not comparable.

        The factor of the learning rate does not change.
        """

    def state(self) -> Mapping[str, Any]:
        """Return the state as JSON values; empty for a function of the step."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the state returned by `state`."""
