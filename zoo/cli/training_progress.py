"""The progress bar and the messages of ``zoo train``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from zoo.cli.terminal import console
from zoo.cli.verbosity import shows_messages, shows_progress
from zoo.training.callback import Callback, RunInfo, TrainingResult

if TYPE_CHECKING:
    from rich.progress import Progress

_REFRESH = 0.1
"""Minimum time between two updates of the bar, in seconds."""


class TrainingProgress(Callback):
    """Prints the events of a run; a progress bar on a terminal, lines otherwise.

    Args:
        stderr: print to standard error, because standard output is JSON.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self.started = False
        self._console = console(stderr=stderr)
        self._bar: Progress | None = None
        self._steps = 0
        self._updated = 0.0

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop_bar()

    def on_message(self, text: str) -> None:
        self._print(text)

    def on_start(self, info: RunInfo) -> None:
        self.started = True
        self._steps = info.steps
        trained = "" if info.trained is None else f", {info.trained:,} of them trained"
        self._print(
            f"{info.name}: {info.parameters:,} parameters{trained}; {info.examples:,} examples, "
            f"{info.updates:,} updates per epoch; {info.steps:,} steps on {info.hardware}"
        )
        if info.step:
            self._print(f"resumed at step {info.step:,}")
        if shows_progress() and self._console.is_terminal:
            self._start_bar(info)

    def _start_bar(self, info: RunInfo) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._bar.add_task("", total=info.steps, completed=info.step)
        self._bar.start()

    def on_step(self, step: int) -> None:
        now = time.monotonic()
        if self._bar is not None and now - self._updated > _REFRESH:
            self._updated = now
            self._bar.update(self._bar.task_ids[0], completed=step)

    def on_log(self, entry: Mapping[str, Any]) -> None:
        if "loss" not in entry:
            return
        text = (
            f"loss {entry['loss']:.4f}  lr {entry['lr']:.2e}  "
            f"{entry['tokens_per_second']:,.0f} {entry.get('speed_unit', 'tokens')}/s"
        )
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=text, completed=entry["step"])
        else:
            self._print(f"step {entry['step']:,}/{self._steps:,}  {text}{self._left(entry)}")

    def _left(self, entry: Mapping[str, Any]) -> str:
        """Return the time left, from the time of all steps so far."""
        seconds = entry["seconds"] * (self._steps - entry["step"]) / entry["step"]
        return f"  {_format_time(seconds)} left" if entry["step"] < self._steps else ""

    def on_evaluation(self, step: int, values: Mapping[str, float], is_best: bool) -> None:
        results = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
        self._print(f"step {step:,}  validation: {results}{'  (best)' if is_best else ''}")

    def on_end(self, result: TrainingResult) -> None:
        self._stop_bar()
        for reason, count in result.skipped.items():
            self._print(f"skipped {count:,} examples: {reason}")
        for reason, count in result.validation_skipped.items():
            self._print(f"skipped {count:,} examples of the validation data: {reason}")
        best = result.best
        if best is not None:
            values = ", ".join(f"{name}: {value:.4f}" for name, value in best["monitored"].items())
            self._print(f"best {values} at step {best['step']:,}")
        self._print(f"model: {result.path}; log: {result.log}")
        data = "" if result.values else " --part data, or with files of your own: --data KEY=VALUE"
        self._print(f"evaluate it with: zoo eval {result.path}{data}")

    def _stop_bar(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _print(self, text: str) -> None:
        if shows_messages():
            self._console.print(text, markup=False, soft_wrap=True)


def _format_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
