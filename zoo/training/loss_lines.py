"""Lines of the log with the mean loss of some steps."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from zoo.data.batches import Update
from zoo.errors import ZooError
from zoo.training.setup import Setup
from zoo.training.state import RunState
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


class _Line(NamedTuple):
    """What is known of a line before its losses.

    Attributes:
        started: the time after its last step was started.
    """

    step: int
    epoch: int
    lr: float
    tokens: int
    skipped: Mapping[str, int]
    started: float


class LossLines:
    """The losses of steps, and the lines of the log with their means.

    Losses stay on the device until a line is due. On a GPU, they are copied while the next step
    runs, after whose start the line is written, so that the device does not wait for it.

    Args:
        write: called with each line.
        began: the time at which the run would have begun without interruptions.

    Attributes:
        record: the losses since the last line.
    """

    def __init__(
        self,
        setup: Setup,
        state: RunState,
        write: Callable[[Mapping[str, Any]], None],
        began: float,
    ) -> None:
        self.record = LossRecord(state.losses, state.norms)
        self._setup = setup
        self._state = state
        self._write = write
        self._began = began
        self._last = time.monotonic()
        self._tokens = 0
        self._line: _Line | None = None

    def add(self, output: StepOutput, update: Update) -> None:
        """Add the output of the last step."""
        state = self._state
        self.record.add(StepPosition(state.step, state.epoch, update.index), output)
        self._tokens += update.tokens

    def start(self) -> None:
        """Start the line of the last step; it is written now, or on a GPU by `finish`."""
        self.record.start()
        state, tokens, self._tokens = self._state, self._tokens, 0
        lr, skipped = self._setup.step.local.lr, self._setup.batches.skipped
        self._line = _Line(state.step, state.epoch, lr, tokens, skipped, time.monotonic())
        if not self.record.copies:
            self.finish()

    def finish(self) -> None:
        """Write the line that was started, if there is one."""
        line, self._line = self._line, None
        if line is None:
            return
        # If its values are there, the device has waited for the next batch, which is of the next
        # line.
        is_late = self.record.has_arrived
        self.record.finish()
        now = line.started if is_late else time.monotonic()
        losses, norms = self.record.losses, self.record.norms
        entry: dict[str, Any] = {
            "step": line.step,
            "epoch": line.epoch,
            "loss": sum(losses) / len(losses),
            "lr": line.lr,
            "tokens_per_second": round(line.tokens / max(now - self._last, 1e-9), 1),
            **({} if self._setup.batches.counts_tokens else {"speed_unit": "examples"}),
            "seconds": round(now - self._began, 3),
        }
        if norms:
            entry["gradient_norm"] = sum(norms) / len(norms)
        if line.skipped:
            entry["skipped"] = line.skipped
        self._write(entry)
        self.record.clear()
        self._last = now

    def read(self) -> None:
        """Write the line that was started, and read the losses of the steps after it."""
        self.finish()
        self.record.read()

    def skip(self, seconds: float) -> None:
        """Leave out a time in which no steps were made, such as that of an evaluation."""
        self._last += seconds
