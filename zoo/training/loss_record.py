"""The losses of recent steps, which stay on the device until they are needed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

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

    `add` does not synchronise the device. `read` does, once for all steps; `start` and `finish` are
    its two halves, between which the device computes what was started in the meantime.

    Attributes:
        losses, norms: values of the steps that have been read.
        stop: whether a process received a signal to stop, as far as steps have been read.
    """

    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    stop: bool = False
    _added: list[tuple[StepPosition, StepOutput]] = field(default_factory=list)
    _copied: _Copies | None = None

    def add(self, position: StepPosition, output: StepOutput) -> None:
        """Add the output of a step."""
        self._added.append((position, output))

    def read(self) -> None:
        """Read the values of all steps that were added.

        Raises:
            NotFinite: for the first step whose loss or gradient norm is infinite or NaN.
        """
        self.start()
        self.finish()

    def start(self) -> None:
        """Start to copy the values of all steps that were added, without waiting for them."""
        self.finish()
        if self._added:
            self._copied, self._added = _Copies(self._added), []

    @property
    def copies(self) -> bool:
        """Whether `start` copies values from a device that computes meanwhile."""
        return self._copied is not None and self._copied.arrival is not None

    @property
    def has_arrived(self) -> bool:
        """Whether `finish` does not wait."""
        arrival = None if self._copied is None else self._copied.arrival
        return arrival is None or bool(arrival.query())  # type: ignore[no-untyped-call]

    def finish(self) -> None:
        """Read the values that `start` copies, when they have arrived; see `read`."""
        copied, self._copied = self._copied, None
        if copied is None:
            return
        names = {"loss": self.losses, "gradient norm": self.norms}
        for (position, output), row in zip(copied.steps, copied.read(), strict=True):
            if output.stops is not None:
                self.stop = self.stop or row.pop() > 0
            for (name, values), value in zip(names.items(), row, strict=False):
                if not math.isfinite(value):
                    raise NotFinite(name, value, position)
                values.append(value)

    def clear(self) -> None:
        """Remove the values that have been read."""
        self.losses, self.norms = [], []


class _Copies:
    """The values of steps on their way from the device.

    Attributes:
        arrival: the event after the copy; None if the values are there.
    """

    def __init__(self, steps: Sequence[tuple[StepPosition, StepOutput]]) -> None:
        self.steps = steps
        rows = [[value for value in output if value is not None] for _, output in steps]
        values = torch.stack([value for row in rows for value in row])
        self._sizes = list(map(len, rows))
        self._values = values.to("cpu", non_blocking=values.is_cuda)  # torch pins its memory
        self.arrival = _record_arrival(values)

    def read(self) -> list[list[float]]:
        """Return the values of each step."""
        if self.arrival is not None:
            self.arrival.synchronize()
        values = iter(self._values.tolist())
        return [list(itertools.islice(values, size)) for size in self._sizes]


def _record_arrival(values: Tensor) -> torch.cuda.Event | None:
    """Return an event after what was started on the device of values; None on the CPU."""
    if not values.is_cuda:
        return None
    arrival = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrival.record(torch.cuda.current_stream(values.device))
    return arrival
