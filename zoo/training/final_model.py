"""The model that a run saves at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from zoo.artifact.saving import save
from zoo.artifact.weights import load_weights
from zoo.files import remove_link
from zoo.spec.spec import load_spec
from zoo.training.averages import average_checkpoints
from zoo.training.checkpoint import MODEL_FILE, checkpoint_path, find_checkpoints
from zoo.training.evaluator import evaluate
from zoo.training.run_checkpoints import RunCheckpoints
from zoo.training.setup import Setup
from zoo.training.state import RunState


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
    """
    average, request, processes = setup.training.average, setup.request, setup.processes
    count = (average and (average.last or average.best)) or 1
    if average is not None and average.last:
        folders = find_checkpoints(checkpoints.folder)[-count:]
    elif state.best is not None:
        steps = state.best_steps(count, lower)
        folders = [checkpoint_path(checkpoints.folder, step) for step in steps]
    else:
        folders = find_checkpoints(checkpoints.folder)[-count:]
    assert setup.model.spec is not None
    spec = load_spec(setup.model.spec, registry=request.registry)
    tensors = average_checkpoints([folder / MODEL_FILE for folder in folders])
    model = load_weights(folders[0], spec, tensors, device=processes.device)
    model.tokenizer = setup.model.tokenizer
    values: dict[str, float] = {}
    if setup.validation is not None:
        is_average = len(folders) > 1
        values = (
            evaluate(setup, model) if is_average or state.best is None else state.best["values"]
        )
    with checkpoints.report_failure(path):
        if processes.is_main:
            train = {**provenance()["train"], "results": values}
            train["checkpoints"] = [folder.name for folder in folders]
            remove_link(path)
            save(model, path, provenance={"train": train})
    return values
