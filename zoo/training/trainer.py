"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo.acceleration.binding import bound_accelerations
from zoo.acceleration.conditions import why_not
from zoo.data.batches import Update
from zoo.errors import ZooError
from zoo.training.callback import Callback
from zoo.training.evaluator import evaluate_run
from zoo.training.interruption import Interrupted, Signals
from zoo.training.loss_lines import LossLines, NotFinite
from zoo.training.monitor import lower_is_better
from zoo.training.run_checkpoints import RunCheckpoints
from zoo.training.run_log import RunLog
from zoo.training.setup import Setup
from zoo.training.state import RunState

_MAX_ORIGINS = 8


class Trainer:
    """Runs the steps of a training, with its log, evaluations and checkpoints."""

    def __init__(
        self,
        setup: Setup,
        state: RunState,
        log: RunLog,
        checkpoints: RunCheckpoints,
        callbacks: Sequence[Callback],
        provenance: Callable[[], Mapping[str, Any]],
        *,
        max_seconds: float | None = None,
    ) -> None:
        self.setup = setup
        self.state = state
        self.log = log
        self.checkpoints = checkpoints
        self.callbacks = callbacks if setup.processes.is_main else ()
        self.provenance = provenance
        self.max_seconds = max_seconds
        self.lower = lower_is_better(setup.training, setup.metrics)
        self._started = time.monotonic() - state.seconds
        self.lines = LossLines(setup, state, self._write, self._started)
        self._is_late = self._has_no_time()
        self._reported: set[str] = set()
        self._reads_every_step = setup.processes.world > 1 and setup.processes.device.type == "cpu"

    def train(self, signals: Signals) -> None:
        """Train until the last step, early stopping, or a signal.

        Raises:
            Interrupted: after a signal, when a checkpoint has been saved.
            ZooError: if a loss is not finite, or a file cannot be written.
        """
        self.setup.model.train()
        self._observe_validation()
        try:
            while not self.is_finished():
                self._train_epoch(signals)
        except NotFinite as error:
            raise ZooError(self._describe(error)) from error
        except BaseException as error:
            try:
                self.lines.finish()
            except Exception as other:  # the error may be the reason
                error.add_note(str(other))
            raise

    def _train_epoch(self, signals: Signals) -> None:
        setup, state, processes = self.setup, self.state, self.setup.processes
        for update in setup.batches.epoch(
            state.epoch,
            start=state.index,
            rank=processes.rank,
            world=processes.world,
            accumulate=setup.training.accumulate,
        ):
            self._update(update, signals)
            if self.is_finished():
                return
        state.epoch, state.index = state.epoch + 1, 0

    def is_finished(self) -> bool:
        """Return whether no step or time is left, or early stopping ends the training."""
        return self._is_stopped_early() or self._is_last_step()

    def is_out_of_time(self) -> bool:
        """Return whether the time limit has ended the training before its last step."""
        is_last = self.state.step >= self.setup.steps or self._is_stopped_early()
        return self._is_late and not is_last

    def _is_stopped_early(self) -> bool:
        patience = self.setup.training.evaluate.patience
        return patience is not None and self.state.stale >= patience

    def _is_last_step(self) -> bool:
        """Return whether the last step was made, or the last one in the time limit."""
        return self.state.step >= self.setup.steps or (self._is_late and self.state.step > 0)

    def _has_no_time(self) -> bool:
        seconds = time.monotonic() - self._started
        return self.max_seconds is not None and seconds >= self.max_seconds

    def _update(self, update: Update, signals: Signals) -> None:
        setup, state, training = self.setup, self.state, self.setup.training
        if any(each.at == state.step for each in training.unfreeze):
            self._unfreeze()
        if setup.schedule is not None:
            setup.step.local.set_lr(setup.schedule.factor(state.step + 1))
        stops = signals.received is not None or setup.failure is not None
        output = setup.step(update.batches, stop=stops)
        self.lines.finish()  # of the step before, while the device has this one to compute
        self._report_path()
        state.step += 1
        state.index = update.index + 1
        if setup.average is not None:
            setup.average.update(state.step)
        self.lines.add(output, update)
        self._is_late = self._has_no_time()  # once, so that the last step is known as the last
        is_last = self._is_last_step()
        if state.step % training.log.every == 0 or is_last:
            self.lines.start()
        elif self._reads_every_step:
            self.lines.read()
        evaluated = self._is_evaluation_due(is_last)
        is_best = evaluated and self._evaluate()
        stop = self.lines.record.stop
        if setup.processes.world == 1:
            stop = signals.received is not None or setup.failure is not None
        if stop or self.is_finished() or self._is_checkpoint_due(evaluated, is_best):
            self.save()
        self._observe_validation()
        for callback in self.callbacks:
            callback.on_step(state.step)
        if stop and not self.is_finished():
            raise self._stopped(signals)

    def _unfreeze(self) -> None:
        before = sum(parameter.numel() for parameter in self.setup.step.local.parameters)
        self.setup.unfreeze(self.state.step)
        after = sum(parameter.numel() for parameter in self.setup.step.local.parameters)
        text = f"step {self.state.step}: {after:,} parameters are trained, before {before:,}"
        for callback in self.callbacks if after != before else ():
            callback.on_message(text)

    def _stopped(self, signals: Signals) -> ZooError:
        """Return the error of a run that one of its processes has stopped."""
        own = (signals.name or self.setup.failure, signals.exit_code)
        found = self.setup.processes.gather(own)
        reason, code = next((each for each in found if each[0] is not None), own)
        text = (
            f"{reason}: training stopped at step {self.state.step}; continue from "
            f"{self.checkpoints.newest()} with --resume"
        )
        return ZooError(text) if code is None else Interrupted(text, code)

    def _report_path(self) -> None:
        """Report once why an acceleration of the step, such as its capture, is not used."""
        step, local = self.setup.step, self.setup.step.local
        if local.device.type == "cpu":
            return
        texts = [f"steps are not captured: {step.not_captured}"] if step.not_captured else []
        for acceleration in bound_accelerations(local):
            reason = why_not(acceleration, local, local.device)
            if reason is not None:
                texts.append(f"acceleration '{acceleration.name}' is not used: {reason}")
        for text in texts:
            if text not in self._reported:
                self._reported.add(text)
                for callback in self.callbacks:
                    callback.on_message(text)

    def _is_evaluation_due(self, is_last: bool) -> bool:
        if self.setup.validation is None:
            return False
        every = self.setup.training.evaluate.every
        if every is not None:
            return is_last or self.state.step % every == 0
        return is_last or self.state.index == self.setup.batches.updates(self.state.epoch)

    def _is_checkpoint_due(self, evaluated: bool, is_best: bool) -> bool:
        training = self.setup.training
        every, average = training.checkpoints.every, training.average
        if evaluated and (is_best or every is None or (average is not None and average.best)):
            return True
        return every is not None and self.state.step % every == 0

    def _write(self, entry: Mapping[str, Any]) -> None:
        try:
            self.log.write(entry)
        except OSError as error:
            raise self.checkpoints.failure(self.log.path, error) from error
        for callback in self.callbacks:
            callback.on_log(entry)

    def _evaluate(self) -> bool:
        """Evaluate on the validation data, and return whether the result is the best so far."""
        self.lines.read()
        started = time.monotonic()
        values = evaluate_run(self.setup)
        is_best = self.state.observe(values, self.lower)
        if self.setup.schedule is not None:
            first, lower = next(iter(self.lower.items()))
            value, sign = self.state.values.get(first), 1 if lower else -1
            self.setup.schedule.observe(math.inf if value is None else sign * value)
        self._log_evaluation(values)
        for callback in self.callbacks:
            callback.on_evaluation(self.state.step, values, is_best)
        self.lines.skip(time.monotonic() - started)
        return is_best

    def _log_evaluation(self, values: Mapping[str, float]) -> None:
        """Write a line of the log with the results, and report those that are not finite."""
        state = self.state
        entry: dict[str, Any] = {"step": state.step, "epoch": state.epoch}
        entry |= {f"validation_{name}": value for name, value in state.values.items()}
        wrong = {name: str(value) for name, value in values.items() if name not in state.values}
        if self.setup.validation is not None and self.setup.validation.skipped:
            entry["skipped_validation"] = self.setup.validation.skipped
        if wrong:
            entry["not_finite"] = wrong
            listed = ", ".join(f"'{name}' is {value}" for name, value in wrong.items())
            monitored = any(name in self.lower for name in wrong)
            effect = "this evaluation is not the best" if monitored else "it is left out"
            for callback in self.callbacks:
                callback.on_message(
                    f"step {state.step}: the validation result {listed}; {effect}, and the "
                    "training continues"
                )
        self._write(entry)

    def _observe_validation(self) -> None:
        """Let the model change after an evaluation, once its checkpoint is saved."""
        state, model = self.state, self.setup.model
        is_best, state.unobserved = state.unobserved, None
        if is_best is None or not model.observe_validation(is_best=is_best):
            return
        state.begin_phase()
        if self.setup.schedule is not None:
            self.setup.schedule.begin_phase()
        for callback in self.callbacks:
            callback.on_message(
                f"step {state.step}: model '{model.name}' has changed; evaluations from now on are "
                "not compared with earlier ones"
            )

    def save(self) -> Path:
        """Save a checkpoint, unless the weights are not finite."""
        self.lines.read()
        state, record = self.state, self.lines.record
        state.losses, state.norms = record.losses, record.norms
        state.seconds = time.monotonic() - self._started
        state.log_bytes = self.log.size()
        state.skipped = self.setup.batches.skipped_state()
        if self.setup.schedule is not None:
            state.schedule = dict(self.setup.schedule.state())
        path = self.checkpoints.save(state, self.provenance())
        for callback in self.callbacks:
            callback.on_checkpoint(path)
        return path

    def _describe(self, error: NotFinite) -> str:
        """Return the message of a loss that is not finite, with the origin of its batch."""
        _, epoch, index = error.position
        update = next(iter(self.setup.batches.epoch(epoch, start=index)))
        origins = update.origins()
        listed = ", ".join(origins[:_MAX_ORIGINS])
        more = f" and {len(origins) - _MAX_ORIGINS} more" if len(origins) > _MAX_ORIGINS else ""
        newest = self.checkpoints.newest()
        good = f"the last checkpoint is {newest}" if newest else "there is no checkpoint yet"
        return (
            f"{error} (epoch {epoch}, batch {index}: {listed}{more}); {good}; try a lower learning "
            "rate, clipping, or precision float32"
        )
