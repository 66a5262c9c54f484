"""Lines of the log with the mean loss of some steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from zoo.data.batches import Update
from zoo.training.loss_record import LossRecord, StepPosition
from zoo.training.setup import Setup
from zoo.training.state import RunState
from zoo.training.step import StepOutput


class LossLines:
    """The losses of steps, and the lines of the log with their means.

    Losses stay on the device until a line is due. On a GPU, they are copied while the next step
    runs, after whose start the line is written, so that the device does not wait for it.

    Args:
        write: called with each line.
        started: the time at which the run would have started without interruptions.
    """

    def __init__(
        self,
        setup: Setup,
        state: RunState,
        write: Callable[[Mapping[str, Any]], None],
        started: float,
    ) -> None:
        self.record = LossRecord(state.losses, state.norms)
        self._setup = setup
        self._state = state
        self._write = write
        self._started = started
        self._written = time.monotonic()
        self._tokens = 0
        self._line: dict[str, Any] | None = None

    def add(self, output: StepOutput, update: Update) -> None:
        """Add the output of the last step."""
        state = self._state
        self.record.add(StepPosition(state.step, state.epoch, update.index), output)
        self._tokens += update.tokens

    def begin(self) -> None:
        """Begin the line of the last step; it is written now, or on a GPU by `end`."""
        self.record.start()
        state, self._tokens, tokens = self._state, 0, self._tokens
        self._line = {
            "step": state.step,
            "epoch": state.epoch,
            "lr": self._setup.step.local.lr,
            "tokens": tokens,
            "skipped": self._setup.batches.skipped,
        }
        if not self.record.is_copying:
            self.end()

    def end(self) -> None:
        """Write the line that was begun."""
        line, self._line = self._line, None
        if line is None:
            return
        self.record.finish()
        now, losses, norms = time.monotonic(), self.record.losses, self.record.norms
        seconds = max(now - self._written, 1e-9)
        entry: dict[str, Any] = {
            "step": line["step"],
            "epoch": line["epoch"],
            "loss": sum(losses) / len(losses),
            "lr": line["lr"],
            "tokens_per_second": round(line["tokens"] / seconds, 1),
            **({} if self._setup.batches.counts_tokens else {"speed_unit": "examples"}),
            "seconds": round(now - self._started, 3),
        }
        if norms:
            entry["gradient_norm"] = sum(norms) / len(norms)
        if line["skipped"]:
            entry["skipped"] = line["skipped"]
        self._write(entry)
        self.record.clear()
        self._written = now

    def read(self) -> None:
        """Write the line that was begun, and read the losses of the steps after it."""
        self.end()
        self.record.read()

    def skip(self, seconds: float) -> None:
        """Leave out a time in which no steps were made, such as that of an evaluation."""
        self._written += seconds
