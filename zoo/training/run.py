"""`zoo.train`: from a spec to a trained, evaluated and saved model."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
import yaml

from zoo.errors import ArtifactError, DataError, ZooError
from zoo.files import atomic_write
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.extending import Source
from zoo.training.callback import Callback, RunInfo, TrainingResult
from zoo.training.checkpoint import find_checkpoints
from zoo.training.final_model import read_provenance, requested_checkpoints, save_final_model
from zoo.training.inputs import RunInputs
from zoo.training.interruption import Signals
from zoo.training.monitor import lower_is_better
from zoo.training.processes import Parallel, Processes
from zoo.training.provenance import completed_epochs, make_provenance
from zoo.training.random_state import get_random_state, seed_all, set_random_state
from zoo.training.resumption import (
    check_best,
    check_examples,
    check_inputs,
    find_run,
    find_spec_changes,
    open_checkpoint,
    read_resumed,
)
from zoo.training.run_checkpoints import RunCheckpoints
from zoo.training.run_folder import (
    CHECKPOINTS,
    LOG_FILE,
    MODEL_FILE,
    PLOT_FILE,
    SPEC_FILE,
    hold_folder,
    open_folder,
)
from zoo.training.run_log import RunLog, plot_log
from zoo.training.setup import Request, Setup, build_setup, read_request
from zoo.training.state import RunState
from zoo.training.stored_checkpoint import StoredCheckpoint
from zoo.training.trainer import Trainer

_log = logging.getLogger(__name__)


def train(
    source: Source,
    *,
    output: str | os.PathLike[str] | None = None,
    overrides: Iterable[str] = (),
    resume: bool = False,
    device: str | torch.device | None = None,
    seed: int | None = None,
    start: str | None = None,
    max_seconds: float | None = None,
    parallel: Parallel | None = None,
    callbacks: Sequence[Callback] = (),
    allow_trackers: Sequence[str] = (),
    registry: ComponentRegistry | None = None,
) -> TrainingResult:
    """Train the model of a spec as its section ``train`` describes.

    The folder `output` gets ``log.jsonl``, ``spec.yaml``, ``checkpoints/``, ``loss.png`` and
    ``model.safetensors``: the best model, or the average that ``train.average`` asks for. Under
    ``accelerate launch`` or ``torchrun`` all processes call this function together.

    Args:
        source: path of a spec, name of a spec of a plugin, or a mapping.
        output: folder of the run; default: ``runs/`` and the name of the spec.
        overrides: values that replace those of the spec, such as ``train.steps=100``.
        resume: continue from the newest checkpoint in `output`, or start if there is none.
        device: default: a GPU if there is one.
        seed: replaces ``train.seed``.
        start: replaces ``train.start``: a file, a folder of a run or a checkpoint, a shipped name,
            or ``org/name[@revision]``, whose weights the training starts from.
        max_seconds: end the training after this many seconds, the time before a resumption
            included; the best model so far is evaluated and saved as usual. For one process only.
        parallel: ``ddp`` or ``fsdp``, for several processes.
        callbacks: observers of the run, such as a progress bar.
        allow_trackers: trackers of ``train.log`` that may send data to a server, such as
            ``wandb``; a tracker that is not listed raises. ``tensorboard`` writes files only.

    Raises:
        SpecError: if the spec is not valid.
        DataError: if an example or a file cannot be used.
        Interrupted: after SIGTERM or Ctrl-C, when a checkpoint has been saved.
        ZooError: if a loss is not finite, a file cannot be written, the run cannot be resumed, or
            another process trains in the folder.
    """
    overrides = [*overrides, *([] if start is None else [f"train.start={json.dumps(start)}"])]
    resumed = None
    if resume:
        folder = find_run(source, overrides, registry) if output is None else Path(output)
        resumed = read_resumed(folder / CHECKPOINTS)
    request = read_request(source, overrides, seed, registry, allow_trackers, resumed)
    folder = Path("runs") / request.spec.name if output is None else Path(output)
    random_state = get_random_state()
    processes = Processes(
        folder,
        device=device,
        precision=request.training.precision,
        parallel=parallel,
        trackers=request.training.log.trackers,
    )
    try:
        with hold_folder(folder, processes), Signals() as signals:
            run = Run(request, folder, processes, callbacks, max_seconds=max_seconds)
            return run.train(resume=resume, signals=signals)
    except DataError as error:
        if not error.skippable:
            raise
        hint = "'bad_data: skip' in 'train' leaves such examples out"
        raise DataError(f"{error.message} ({hint})", error.origin) from error
    finally:
        processes.close()
        set_random_state(random_state)


class Run:
    """A run in a folder: opens or continues it, trains, and saves the final model."""

    def __init__(
        self,
        request: Request,
        folder: Path,
        processes: Processes,
        callbacks: Sequence[Callback],
        *,
        max_seconds: float | None = None,
    ) -> None:
        if max_seconds is not None and processes.world > 1:
            raise ZooError(f"max_seconds is {max_seconds:g}, but a time limit needs one process")
        self.request = request
        self.folder = folder
        self.processes = processes
        self.max_seconds = max_seconds
        self.callbacks = callbacks if processes.is_main else ()

    def train(self, *, resume: bool, signals: Signals) -> TrainingResult:
        newest = open_folder(self.folder, self.processes, resume=resume)
        if resume and newest is None:
            self._message(f"{self.folder} has no checkpoint; training starts at step 0")
        stored = None if newest is None else open_checkpoint(newest, self.processes, self.request)
        if stored is not None:
            for change in find_spec_changes(stored, self.request):
                self._message(f"changed: {change}")
        plan = self.request.started.plan
        for line in plan.lines() if plan is not None and stored is None else ():
            self._message(line)
        seed_all(self.request.training.seed + self.processes.rank)
        step = 0 if stored is None else stored.run_state().step
        setup = build_setup(self.request, self.processes, self._report_progress, step=step)
        try:
            return self._train(setup, stored, signals)
        except RuntimeError as error:
            if not self.processes.is_connection_error(error):
                raise
            found = find_checkpoints(self.folder / CHECKPOINTS)
            good = f"continue from {found[-1]} with --resume" if found else "no checkpoint exists"
            problem = ZooError(
                f"process {self.processes.rank} of {self.processes.world} has lost the connection "
                f"to another process, which may have been killed; {good}"
            )
            # At once: a launcher whose process was killed ends the others within a moment.
            _log.error("%s", problem)
            raise problem from error
        finally:
            setup.close()

    def _train(
        self, setup: Setup, stored: StoredCheckpoint | None, signals: Signals
    ) -> TrainingResult:
        lower = lower_is_better(setup.training, setup.metrics)
        inputs = RunInputs(self.request.spec) if self.processes.is_main else None
        folder = self.folder / CHECKPOINTS
        checkpoints = RunCheckpoints(folder, setup, lower=lower, inputs=inputs)
        state = RunState()
        if stored is not None:
            check_examples(stored, setup)
            with self.processes.fail_together():
                for change in check_inputs(stored, setup, inputs) if inputs else ():
                    self._message(f"changed: {change}")
                state = checkpoints.restore(stored)
                check_best(state, checkpoints, lower, setup.model.base)
        provenance = make_provenance(setup, state)
        checkpoints.check(state, provenance())
        if inputs is not None:
            inputs.start_hashing()
        self._start(setup, state, checkpoints)
        log = RunLog(self.folder / LOG_FILE, self.processes, size=state.log_bytes)
        log.start_trackers(
            self.request.training.log.trackers, self.request.spec.resolve(), state.step
        )
        if stored is None and self.request.started.record is not None:
            log.write({"step": 0, "start": self.request.started.record})
        trainer = Trainer(
            setup, state, log, checkpoints, self.callbacks, provenance, max_seconds=self.max_seconds
        )
        try:
            if trainer.is_finished() and self._has_final_model(state):
                self._message(f"the run in {self.folder} is finished: step {state.step}")
                values = state.best["values"] if state.best else {}
            else:
                trainer.train(signals)
                path = self.folder / MODEL_FILE
                values = save_final_model(setup, state, checkpoints, path, provenance, lower)
        finally:
            log.close()
        self._plot()
        result = self._result(setup, state, values, out_of_time=trainer.is_out_of_time())
        self._report_average(setup, len(result.checkpoints))
        for callback in self.callbacks:
            callback.on_end(result)
        return result

    def _start(self, setup: Setup, state: RunState, checkpoints: RunCheckpoints) -> None:
        if not self.processes.is_main:
            return
        text = yaml.safe_dump(self.request.spec.resolve(), sort_keys=False, allow_unicode=True)
        path = self.folder / SPEC_FILE
        try:
            with atomic_write(path, follow_links=False) as temporary:
                temporary.write_text(text, encoding="utf-8")
        except OSError as error:
            raise checkpoints.failure(path, error) from None
        parameters = sum(parameter.numel() for parameter in setup.model.parameters())
        trained = sum(parameter.numel() for parameter in setup.step.local.parameters)
        info = RunInfo(
            self.request.spec.name,
            parameters,
            len(setup.batches.examples) - sum(setup.batches.skipped.values()),
            setup.batches.updates(state.epoch),
            setup.steps,
            state.step,
            self.processes.describe(),
            None if trained == parameters else trained,
        )
        for callback in self.callbacks:
            callback.on_start(info)

    def _has_final_model(self, state: RunState) -> bool:
        try:
            return bool(read_provenance(self.folder / MODEL_FILE).get("step") == state.step)
        except ArtifactError as error:
            self._message(f"the model is damaged and is saved again: {error}")
            return False

    def _result(
        self, setup: Setup, state: RunState, values: Mapping[str, float], *, out_of_time: bool
    ) -> TrainingResult:
        return TrainingResult(
            state.step,
            completed_epochs(setup, state),
            values,
            state.best,
            self.folder / MODEL_FILE,
            self.folder / LOG_FILE,
            setup.batches.skipped,
            read_provenance(self.folder / MODEL_FILE).get("checkpoints", ()),
            setup.validation.skipped if setup.validation is not None else {},
            out_of_time,
        )

    def _report_average(self, setup: Setup, count: int) -> None:
        requested = requested_checkpoints(setup)
        if count < requested:
            self._message(
                f"train.average asks for {requested} checkpoints, but the run has {count}; "
                "evaluate or save checkpoints more often"
            )

    def _plot(self) -> None:
        if self.processes.is_main:
            try:
                plot_log(self.folder / LOG_FILE, self.folder / PLOT_FILE, self.request.spec.name)
            except ZooError as error:  # the model is more important than its plot
                self._message(f"no plot saved: {error}")

    def _message(self, text: str) -> None:
        for callback in self.callbacks:
            callback.on_message(text)

    def _report_progress(self, text: str, done: int, total: int) -> None:
        for callback in self.callbacks:
            callback.on_progress(text, done, total)
