"""The losses of recent steps, which stay on the device until they are needed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from zoo.errors import ZooError
from zoo.training.step import StepOutput


class StepPosition(NamedTuple):
    """A step, and its position in the data: the epoch and the batch in it."""

    step: int
    epoch: int
    batch: int


class NotFinite(ZooError):
    """Raised when a loss or a gradient norm is not a finite number."""

    def __init__(self, what: str, value: float, position: StepPosition) -> None:
        super().__init__(f"the {what} of step {position.step} is {value}")
        self.position = position


@dataclass
class LossRecord:
    """Losses since the last line of the log.

    `add` does not synchronise the device; `read` does, once for all steps.

    Attributes:
        losses, norms: values of the steps that have been read.
        stop: whether a process received a signal to stop, as far as steps have been read.
    """

    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    stop: bool = False
    _pending: list[tuple[StepPosition, StepOutput]] = field(default_factory=list)

    def add(self, position: StepPosition, output: StepOutput) -> None:
        """Add the output of a step."""
        self._pending.append((position, output))

    def read(self) -> None:
        """Read the values of all steps that were added.

        Raises:
            NotFinite: for the first step whose loss or gradient norm is infinite or NaN.
        """
        pending, self._pending = self._pending, []
        if not pending:
            return
        names = {"loss": self.losses, "gradient norm": self.norms}
        rows = torch.stack(
            [torch.stack([value for value in output if value is not None]) for _, output in pending]
        ).tolist()
        for (position, output), row in zip(pending, rows, strict=True):
            if output.stops is not None:
                self.stop = self.stop or row.pop() > 0
            for (name, values), value in zip(names.items(), row, strict=False):
                if not math.isfinite(value):
                    raise NotFinite(name, value, position)
                values.append(value)

    def clear(self) -> None:
        """Remove the values that have been read."""
        self.losses, self.norms = [], []
