"""Continues a run from a checkpoint: what is compared before the training goes on."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from zoo.artifact.loading import read_header
from zoo.errors import SpecError, ZooError
from zoo.files import FILE_NAME
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.extending import Source, merge_source
from zoo.spec.spec import load_spec
from zoo.training.checkpoint import checkpoint_path, find_checkpoints
from zoo.training.inherited import Resumed
from zoo.training.inputs import RunInputs, find_preprocessing_changes, reject_changes
from zoo.training.processes import Processes
from zoo.training.run_checkpoints import BASE, RunCheckpoints
from zoo.training.setup import Request, Setup
from zoo.training.spec_changes import Change, check_changes, find_changes
from zoo.training.state import RunState
from zoo.training.stored_checkpoint import MODEL_FILE, StoredCheckpoint, open_model, read_state


def find_run(source: Source, overrides: Iterable[str], registry: ComponentRegistry | None) -> Path:
    """Return the default folder of a run, by the name in a spec that is not checked yet."""
    data = merge_source(source, overrides, registry or default_registry()).data
    name = data.get("name") if isinstance(data, dict) else None
    is_name = isinstance(name, str) and re.fullmatch(FILE_NAME, name)
    return Path("runs") / (str(name) if is_name else "-")


def read_resumed(checkpoints: Path) -> Resumed | None:
    """Return what the newest checkpoint in a folder has of the base of its run; None without one.

    Raises:
        DamagedFile: if the checkpoint is damaged.
    """
    found = find_checkpoints(checkpoints)
    data = read_state(found[-1]) if found else {}
    if not isinstance(data.get(BASE), dict) or not isinstance(data.get("spec"), dict):
        return None
    header = read_header(found[-1] / MODEL_FILE)
    return Resumed(data[BASE], data["spec"], header.tokenizer)


def open_checkpoint(path: Path, processes: Processes, request: Request) -> StoredCheckpoint:
    """Open a checkpoint of a run on all processes; the main process compares its hashes."""
    base = (request.started.record or {}).get("name")
    with processes.fail_together():
        stored = StoredCheckpoint.open(path, verify=processes.is_main, base=base)
        stored.run_state()
    return stored


def find_spec_changes(stored: StoredCheckpoint, request: Request) -> list[Change]:
    """Return what changed in the spec since a checkpoint.

    Raises:
        ZooError: if a run cannot be continued with one of the changes.
    """
    old = stored.run_data()["spec"]
    with contextlib.suppress(SpecError):  # parameters that were added since have their defaults
        old = load_spec(old, registry=request.registry).resolve()
    changes = list(find_changes(old, request.spec.resolve()))
    record = request.started.record or {}
    check_changes([each for each in changes if not _keeps_base(each, record)])
    return changes


def _keeps_base(change: Change, record: Mapping[str, Any]) -> bool:
    """Return whether a change only adds or removes the hash of the base, or gives its new place."""
    if change.path == "train.start.weights":
        return bool(change.new == record.get("name"))
    return change.path == "train.start.sha256" and change.new in (None, record.get("sha256"))


def check_examples(stored: StoredCheckpoint, setup: Setup) -> None:
    """Raise ZooError if the number of training examples has changed since a checkpoint."""
    old, new = stored.run_data()["examples"], len(setup.batches.examples)
    if old != new:
        raise ZooError(
            f"the training data has {new:,} examples, but had {old:,} at {stored.path}; the "
            "position in the data would be another; start a new run in another folder"
        )


def check_inputs(stored: StoredCheckpoint, setup: Setup, inputs: RunInputs) -> list[str]:
    """Return the changes of inputs that are allowed: those of validation data.

    Raises:
        ZooError: if tokenizers, classes or training data have changed since a checkpoint.
    """
    allowed: list[str] = []
    rejected = find_preprocessing_changes(stored, setup.model, setup.request.registry)
    for part, change in inputs.compare(stored):
        (rejected if part == "data" else allowed).append(change)
    reject_changes(stored, rejected)
    return allowed


def check_best(
    state: RunState, checkpoints: RunCheckpoints, lower: Mapping[str, bool], base: str | None
) -> None:
    """Raise ZooError if the best checkpoint, the final model so far, is missing or damaged."""
    for step in state.best_steps(1, lower) if state.best is not None else ():
        path = checkpoint_path(checkpoints.folder, step)
        if not path.exists():
            raise ZooError(
                f"{path} is missing, but it is the best checkpoint so far; restore it, or start a "
                "new run in another folder"
            )
        open_model(path, base)
