"""Events of a training run, for progress bars and other observers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RunInfo:
    """What is known when a run starts.

    Attributes:
        name: the name of the spec.
        parameters: number of parameters of the model.
        examples: number of training examples, without those that are left out so far.
        updates: number of updates in an epoch.
        steps: number of steps of the whole run.
        step: the step from which the run is resumed; 0 for a new run.
        hardware: device and number of processes.
        trained: number of parameters that are trained; None: all.
    """

    name: str
    parameters: int
    examples: int
    updates: int
    steps: int
    step: int
    hardware: str
    trained: int | None = None


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training run.

    Attributes:
        step: number of steps.
        epoch: number of completed epochs.
        values: results of the saved model on the validation data, by name.
        best: the best evaluation: ``step``, all ``values``, those ``monitored``, and ``name`` and
            ``value`` of the first one monitored; None without validation.
        path: the file of the saved model.
        log: the log, one JSON object per line.
        skipped: number of examples left out, by reason.
        checkpoints: names of the checkpoints whose weights the saved model has, or averages.
        validation_skipped: number of examples left out of the validation data, by reason.
        out_of_time: whether the time limit ended the training before its last step.
    """

    step: int
    epoch: int
    values: Mapping[str, float]
    best: Mapping[str, Any] | None
    path: Path
    log: Path
    skipped: Mapping[str, int]
    checkpoints: Sequence[str] = ()
    validation_skipped: Mapping[str, int] = field(default_factory=dict)
    out_of_time: bool = False


class Callback:
    """Receives the events of a run. Called on the main process only; no method has to be defined.

    `on_step` is called after every step, before the loss is known: reading it would synchronise
    the device. Losses arrive in `on_log`; with a GPU it can be called when the next step was
    started.
    """

    def on_message(self, text: str) -> None:
        """A message to the user."""

    def on_progress(self, text: str, done: int, total: int) -> None:
        """Part of the preparation ends, such as the encoding of texts."""

    def on_start(self, info: RunInfo) -> None:
        """Training starts or is resumed."""

    def on_step(self, step: int) -> None:
        """A step ends."""

    def on_log(self, entry: Mapping[str, Any]) -> None:
        """A line of the log was written."""

    def on_evaluation(self, step: int, values: Mapping[str, float], is_best: bool) -> None:
        """An evaluation ends."""

    def on_checkpoint(self, path: Path) -> None:
        """A checkpoint was saved."""

    def on_end(self, result: TrainingResult) -> None:
        """Training ends."""
