"""The model that a run saves at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from zoo.adapters import find_adapters
from zoo.artifact.hashing import check_hashes
from zoo.artifact.loading import read_header
from zoo.artifact.saving import save
from zoo.artifact.weights import load_weights
from zoo.errors import ZooError
from zoo.files import remove_link
from zoo.hub.adapters import save_adapter
from zoo.spec.spec import load_spec
from zoo.training.averages import average_checkpoints
from zoo.training.checkpoint import checkpoint_path, find_checkpoints
from zoo.training.evaluator import evaluate
from zoo.training.run_checkpoints import RunCheckpoints
from zoo.training.setup import Setup
from zoo.training.state import RunState, finite_values
from zoo.training.stored_checkpoint import open_model


def save_final_model(
    setup: Setup,
    state: RunState,
    checkpoints: RunCheckpoints,
    path: Path,
    provenance: Callable[[], Mapping[str, Any]],
    lower: Mapping[str, bool],
) -> dict[str, float]:
    """Save the best or last model, or the average of several, and return its results.

    Called by all processes; the main process writes.

    Raises:
        ZooError: if there is no checkpoint, or a file cannot be written.
    """
    request, processes = setup.request, setup.processes
    folders = final_checkpoints(setup, state, checkpoints, lower)
    if not folders:
        raise ZooError(f"{checkpoints.folder} has no checkpoint to save as the final model")
    assert setup.model.spec is not None
    spec = load_spec(setup.model.spec, registry=request.registry)
    base = setup.model.base
    tensors = average_checkpoints({folder: open_model(folder, base) for folder in folders})
    model = load_weights(folders[0], spec, tensors, device=processes.device)
    model.tokenizer = setup.model.tokenizer
    values: dict[str, float] = {}
    if setup.validation is not None:
        is_average = len(folders) > 1
        values = (
            finite_values(evaluate(setup, model))
            if is_average or state.best is None
            else state.best["values"]
        )
    with checkpoints.report_failure(path):
        if processes.is_main:
            current = provenance()
            train = {**current["train"], "results": values}
            train["checkpoints"] = [folder.name for folder in folders]
            remove_link(path)
            record = {**current, "train": train}
            if base is not None and find_adapters(model):
                save_adapter(model, path, base=base, provenance=record)
            else:
                save(model, path, provenance=record)
    return values


def final_checkpoints(
    setup: Setup, state: RunState, checkpoints: RunCheckpoints, lower: Mapping[str, bool]
) -> list[Path]:
    """Return the checkpoints of the final model, at most as many as ``train.average`` asks for."""
    average, count = setup.training.average, requested_checkpoints(setup)
    if state.best is None or (average is not None and average.last):
        return find_checkpoints(checkpoints.folder)[-count:]
    steps = state.best_steps(count, lower)
    return [checkpoint_path(checkpoints.folder, step) for step in steps]


def requested_checkpoints(setup: Setup) -> int:
    """Return the number of checkpoints whose average is the final model; 1 for no average."""
    average = setup.training.average
    return (average and (average.last or average.best)) or 1


def read_provenance(path: Path) -> Mapping[str, Any]:
    """Return the provenance of the training in a final model; empty if there is no file.

    Raises:
        ArtifactError: if the file is damaged.
    """
    if not path.is_file():
        return {}
    stored: Mapping[str, Any] = read_header(path).provenance.get("train") or {}
    check_hashes(path)
    return stored
