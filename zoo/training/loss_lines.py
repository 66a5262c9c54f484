"""Lines of the log with the mean loss of some steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from zoo.data.batches import Update
from zoo.training.loss_record import LossRecord, StepPosition
from zoo.training.setup import Setup
from zoo.training.state import RunState
from zoo.training.step import StepOutput


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
