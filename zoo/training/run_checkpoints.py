"""The checkpoints of a run: what they contain, and which are kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zoo.artifact.base import BasePin
from zoo.artifact.saving import build_saved, check_saving, save
from zoo.artifact.weights import named_tensors
from zoo.errors import ArtifactError, ZooError
from zoo.files import os_error_message
from zoo.interfaces import Model, Schedule
from zoo.interfaces.tensors import TensorMeta
from zoo.training.checkpoint import (
    checkpoint_path,
    checkpoint_step,
    find_checkpoints,
    load_tensors,
    objective_tensors,
    remove_checkpoint,
    restore_objective,
    write_checkpoint,
)
from zoo.training.inputs import KEY as INPUTS, RunInputs
from zoo.training.optimiser_state import optimiser_numbers, optimiser_tensors, restore_optimiser
from zoo.training.pinned_base import PinnedBase, find_pinned, frozen_names
from zoo.training.random_state import get_random_state, seed_all, set_random_state
from zoo.training.setup import Setup
from zoo.training.sharding import full, local, shard_like
from zoo.training.state import RunState
from zoo.training.stored_checkpoint import HASHES, STATE_FILE, TENSOR_FILE, StoredCheckpoint


def read_weights(
    stored: StoredCheckpoint, name: str, current: Tensor, *, optional: bool
) -> Tensor | None:
    """Return a tensor of the shape and dtype of another.

    Args:
        optional: return None if there is no tensor of this name.
    """
    meta = stored.tensors.metas.get(name)
    if meta is None and optional:
        return None
    expected = TensorMeta.of(current)
    if meta != expected:
        found = f"is {meta.dtype} {list(meta.shape)}" if meta else "is missing"
        shape = f"{expected.dtype} {list(expected.shape)}"
        raise stored.damage(TENSOR_FILE, f"tensor '{name}' {found}, expected {shape}")
    return stored.tensors.read(name)


def restore_random_state(stored: StoredCheckpoint, prefix: str) -> bool:
    """Set the random generators from the tensors with a prefix; return whether there are any."""
    entries = [name for name in stored.tensors.metas if name.startswith(prefix)]
    random = {name.removeprefix(prefix): stored.tensors.read(name).clone() for name in entries}
    if not random:
        return False
    for key, tensor in get_random_state().items():
        found = random.get(key)
        if (found is None and key != "cuda") or (
            found is not None and TensorMeta.of(found) != TensorMeta.of(tensor)
        ):
            raise stored.damage(TENSOR_FILE, f"the random state '{key}' is not valid")
    try:
        set_random_state(random)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise stored.damage(TENSOR_FILE, f"the random state is not valid ({error})") from None
    return True


def restore_schedule(
    stored: StoredCheckpoint, schedule: Schedule, state: Mapping[str, Any]
) -> None:
    """Set the state of a schedule."""
    try:
        schedule.restore(state)
        schedule.factor(1)
    except (LookupError, TypeError, ValueError) as error:
        reason = f"the state of schedule '{schedule.name}' is not valid ({error})"
        raise stored.damage(STATE_FILE, reason) from None


BASE = "base"
"""Key of the base of the training in the state of a checkpoint."""
_WEIGHTS = "weights/"
_RANDOM = "random"


class RunCheckpoints:
    """Saves and restores a run.

    With a moving average, the model of a checkpoint has the averages, and the weights of the last
    step are next to the state of the optimiser. Adapters are saved without the frozen weights of
    their base, which is pinned by its hash.
    """

    def __init__(
        self,
        folder: Path,
        setup: Setup,
        *,
        lower: Mapping[str, bool],
        inputs: RunInputs | None = None,
    ) -> None:
        self.folder = folder
        self._setup = setup
        self._lower = lower
        self._inputs = inputs
        self._spec = setup.request.spec.resolve()
        self._base: PinnedBase | None = None

    def newest(self) -> Path | None:
        """Return the newest checkpoint, or None."""
        found = find_checkpoints(self.folder)
        return found[-1] if found else None

    def check(self, state: RunState, provenance: Mapping[str, Any]) -> None:
        """Raise ZooError if the model could not be saved. Called by all processes before a step."""
        setup, target = self._setup, checkpoint_path(self.folder, state.step)
        tensors = {name: full(tensor) for name, tensor in named_tensors(setup.model).items()}
        with setup.processes.fail_together():
            if setup.processes.is_main:
                is_whole = not setup.processes.sharded
                model = setup.model if is_whole else _rebuild(setup, tensors, target)
                pinned = self._pin(target, tensors)
                check_saving(model, target, provenance=provenance, base=pinned)

    def save(self, state: RunState, provenance: Mapping[str, Any]) -> Path:
        """Save a checkpoint, then remove those that are not kept. Called by all processes."""
        setup, processes = self._setup, self._setup.processes
        target = checkpoint_path(self.folder, state.step)
        tensors = self._tensors()
        write_model = model_writer(setup, provenance, partial(self._pin, target))
        with self.report_failure(target):
            if processes.is_main:
                data = {
                    "step": state.step,
                    "world": processes.world,
                    "examples": len(setup.batches.examples),
                    "spec": self._spec,
                    "optimiser": optimiser_numbers(setup.model, setup.optimiser),
                    "state": state.as_json(),
                }
                if setup.request.started.record is not None:
                    data[BASE] = dict(setup.request.started.record)
                if self._inputs is not None:
                    data[INPUTS] = self._inputs.as_json()
                write_checkpoint(target, write_model, tensors, data)
                self._remove_old(state)
        return target

    @contextlib.contextmanager
    def report_failure(self, target: Path) -> Iterator[None]:
        """Raise ZooError on all processes if one of them cannot write."""
        problem = None
        try:
            yield
        except (OSError, ArtifactError) as error:
            problem = str(self.failure(target, error))
        for message in filter(None, self._setup.processes.gather(problem)):
            raise ZooError(message)

    def failure(self, target: Path, error: OSError | ArtifactError) -> ZooError:
        """Return the error of a file that could not be written."""
        cause = error.__cause__
        reason = os_error_message(cause if isinstance(cause, OSError) else error)
        newest = self.newest()
        kept = f"continue from {newest} with --resume" if newest else "there is no checkpoint yet"
        return ZooError(f"{target} could not be written: {reason}; {kept}")

    def _pin(self, target: Path, tensors: Mapping[str, Tensor]) -> BasePin | None:
        """Return which tensors of the model are not saved, because they are those of its base."""
        model = self._setup.model
        if self._base is None:
            plan = self._setup.request.started.plan
            base = None if plan is None else plan.opened.base
            self._base = find_pinned(model, base, tensors, target)
        return None if self._base is None else self._base.current(model)

    def _tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint other than the model; complete on the main process."""
        setup, processes = self._setup, self._setup.processes
        found = optimiser_tensors(setup.model, setup.optimiser)
        found |= objective_tensors(setup.objective)
        if setup.average is not None:
            frozen = frozen_names(setup.model)  # equal to their averages
            weights = setup.average.named_weights.items()
            found |= {f"{_WEIGHTS}{name}": w for name, w in weights if name not in frozen}
        tensors = {name: full(tensor).cpu() for name, tensor in found.items()}
        for rank, states in enumerate(processes.gather(get_random_state())):
            tensors |= {f"{_RANDOM}/{rank}/{key}": value for key, value in states.items()}
        return tensors

    def _remove_old(self, state: RunState) -> None:
        training = self._setup.training
        average = training.average
        last = max(training.checkpoints.last, (average and average.last) or 0)
        best = max(training.checkpoints.best, (average and average.best) or 0)
        found = find_checkpoints(self.folder)
        steps = {checkpoint_step(path) for path in found}
        state.scores = {step: v for step, v in state.scores.items() if int(step) in steps}
        keep = {*sorted(steps)[-last:], *state.best_steps(best, self._lower)}
        for path in found:
            if checkpoint_step(path) not in keep:
                remove_checkpoint(path)

    @torch.no_grad()
    def restore(self, stored: StoredCheckpoint) -> RunState:
        """Set everything with state from a checkpoint: weights, averages, optimiser, objective,
        schedule, random generators and counts of skipped examples.

        Raises:
            ZooError: if the checkpoint is damaged or belongs to another model or optimiser.
        """
        setup, data, tensors = self._setup, stored.run_data(), stored.tensors
        state, average = stored.run_state(), setup.average
        self._base = stored.base
        restore_optimiser(setup.model, setup.optimiser, tensors, data["optimiser"])
        load_tensors(setup.model, stored.model, stored.path)
        restore_objective(setup.objective, tensors, stored.path)
        setup.batches.restore_skipped(state.skipped)
        if average is not None:
            torch._foreach_copy_(average.averages, average.weights)
            for name, current in average.named_weights.items():
                # Weights that were frozen are not saved. Checkpoints of previous versions, without
                # hashes, have all of them, but no running statistics of the weights.
                optional = HASHES in data or not isinstance(current, nn.Parameter)
                found = read_weights(stored, f"{_WEIGHTS}{name}", current, optional=optional)
                if found is not None:
                    local(current).copy_(local(shard_like(found, current)))
        if setup.schedule is not None and state.schedule:
            restore_schedule(stored, setup.schedule, state.schedule)
        prefix = f"{_RANDOM}/{setup.processes.rank}/"
        is_same = data["world"] == setup.processes.world
        if not (is_same and restore_random_state(stored, prefix)):
            seed_all(setup.training.seed + state.step + setup.processes.rank)
        return state


def model_writer(
    setup: Setup,
    provenance: Mapping[str, Any],
    pin: Callable[[Mapping[str, Tensor]], BasePin | None],
) -> Callable[[Path], Any]:
    """Return a function that writes the current model, or its averages, as an artifact.

    Called by all processes; only the main process calls the function.

    Args:
        pin: returns which of the tensors are not saved.

    Raises:
        ZooError: if a weight is not a finite number.
    """
    model = setup.model
    with averaged(setup):
        tensors = {name: full(tensor) for name, tensor in named_tensors(model).items()}
        if setup.average is not None or setup.processes.sharded:
            tensors = {name: tensor.to("cpu", copy=True) for name, tensor in tensors.items()}
    check_finite(tensors)
    if setup.average is None and not setup.processes.sharded:
        return lambda path: save(model, path, provenance=provenance, base=pin(tensors))
    return lambda path: save(
        _rebuild(setup, tensors, path), path, provenance=provenance, base=pin(tensors)
    )


def _rebuild(setup: Setup, tensors: Mapping[str, Tensor], path: Path) -> Model:
    """Return a model of the spec with other tensors than the model that is trained."""
    model, registry = setup.model, setup.request.registry
    assert model.spec is not None
    return build_saved(
        model.spec, model.providers, tensors, path, tokenizer=model.tokenizer, registry=registry
    )


def averaged(setup: Setup) -> contextlib.AbstractContextManager[None]:
    """Return a context in which the model has the weights that are evaluated and saved."""
    return setup.average.applied() if setup.average else contextlib.nullcontext()


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """Raise ZooError if a weight is infinite or NaN."""
    floats = {name: t for name, t in tensors.items() if t.is_floating_point()}
    if not floats:
        return
    finite = torch.stack([t.isfinite().all() for t in floats.values()]).tolist()
    wrong = [name for name, ok in zip(floats, finite, strict=True) if not ok]
    if wrong:
        raise ZooError(f"weights are not finite numbers after the last step: {wrong[0]}")
