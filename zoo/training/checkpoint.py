"""Checkpoints: folders with a model, the state of the optimiser and the position of a run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zoo.artifact.checkpoint import open_tensors, write_tensors
from zoo.artifact.saving import is_main_process, save
from zoo.artifact.weights import named_tensors
from zoo.errors import ZooError
from zoo.files import fsync_path, remove_stale, staging_dir
from zoo.interfaces import Model
from zoo.interfaces.tensors import TensorMeta, TensorReader
from zoo.training.optimiser_state import optimiser_numbers, optimiser_tensors, restore_optimiser
from zoo.training.sharding import local, shard_like

MODEL_FILE = "model.safetensors"
TENSOR_FILE = "optimiser.safetensors"
STATE_FILE = "state.json"

_OBJECTIVE = "objective/"
_NAME = re.compile(r"step-(\d{8,})")
_STAGING = re.compile(r"\.(step-\d{8,})\.[0-9]+\.[0-9a-f]{8}\.part")


def save_checkpoint(
    folder: str | os.PathLike[str],
    model: Model,
    optimiser: torch.optim.Optimizer,
    *,
    step: int,
    state: Mapping[str, Any] | None = None,
    objective: nn.Module | None = None,
) -> Path:
    """Save a checkpoint of a training loop, atomically, and return its folder.

    The folder ``step-00000100`` contains ``model.safetensors``, a model that `zoo.load` reads,
    ``optimiser.safetensors`` and ``state.json``. In distributed training only rank 0 writes.

    Args:
        folder: the folder of the checkpoints of a run; created if it does not exist.
        state: further values to save as JSON.
        objective: the objective, if it has state, such as the baseline of ``reinforce``.
    """
    target = checkpoint_path(folder, step)
    if is_main_process():
        numbers = optimiser_numbers(model, optimiser)
        write_checkpoint(
            target,
            lambda path: save(model, path, provenance={"step": step}),
            optimiser_tensors(model, optimiser) | objective_tensors(objective),
            {"step": step, "optimiser": numbers, "state": dict(state or {})},
        )
    return target


def load_checkpoint(
    path: str | os.PathLike[str],
    model: Model,
    optimiser: torch.optim.Optimizer,
    *,
    objective: nn.Module | None = None,
) -> dict[str, Any]:
    """Restore model and optimiser, and the objective, from a checkpoint of `save_checkpoint`.

    Args:
        path: a checkpoint, or a folder of checkpoints, of which the newest is used.
        objective: the objective whose state was saved.

    Returns:
        ``state`` as it was saved, with ``step``.

    Raises:
        ZooError: if there is no checkpoint, or it belongs to another model.
    """
    found = Path(path)
    if not (found / STATE_FILE).is_file():
        checkpoints = find_checkpoints(found)
        if not checkpoints:
            raise ZooError(f"{path} does not contain a checkpoint")
        found = checkpoints[-1]
    data = read_state(found)
    load_tensors(model, open_tensors([found / MODEL_FILE]), found)
    tensors = open_tensors([found / TENSOR_FILE])
    restore_optimiser(model, optimiser, tensors, data["optimiser"])
    restore_objective(objective, tensors, found)
    return {**data["state"], "step": data["step"]}


def checkpoint_path(folder: str | os.PathLike[str], step: int) -> Path:
    """Return the path of the checkpoint of a step."""
    return Path(folder) / f"step-{step:08d}"


def checkpoint_step(path: Path) -> int:
    """Return the step in the name of a checkpoint."""
    match = _NAME.fullmatch(path.name)
    assert match, path
    return int(match[1])


def find_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(
        (entry for entry in folder.iterdir() if _NAME.fullmatch(entry.name)), key=checkpoint_step
    )


def write_checkpoint(
    target: Path,
    write_model: Callable[[Path], Any],
    tensors: Mapping[str, Tensor],
    state: Mapping[str, Any],
) -> None:
    """Write a checkpoint to a temporary folder, flush it to the disk, and rename it.

    An existing checkpoint of the same step is kept: it has the same content.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        return
    with staging_dir(target) as staging:
        new = staging / "new"
        new.mkdir()
        write_model(new / MODEL_FILE)
        metas = {name: TensorMeta.of(tensor) for name, tensor in tensors.items()}
        write_tensors(new / TENSOR_FILE, metas, tensors.items())
        (new / STATE_FILE).write_text(json.dumps(state), encoding="utf-8")
        for file in new.iterdir():
            fsync_path(file)
        fsync_path(new)
        os.rename(new, target)
        fsync_path(target.parent)


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint; it has its name until it is removed as a whole."""
    with staging_dir(path) as staging:
        os.rename(path, staging / "old")


def remove_unfinished(folder: Path) -> None:
    """Remove what processes that were killed have left of checkpoints they were writing."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        match = _STAGING.fullmatch(entry.name)
        if match:
            remove_stale(folder / match[1])


def read_state(path: Path) -> dict[str, Any]:
    """Return the state of a checkpoint; raise ZooError if it cannot be read."""
    try:
        data: dict[str, Any] = json.loads((path / STATE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ZooError(f"{path / STATE_FILE} cannot be read: {error}") from None
    return data


def objective_tensors(objective: nn.Module | None) -> dict[str, Tensor]:
    """Return the tensors of an objective, by names such as ``objective/baseline``."""
    if objective is None:
        return {}
    return {f"{_OBJECTIVE}{name}": t.detach() for name, t in named_tensors(objective).items()}


def restore_objective(objective: nn.Module | None, reader: TensorReader, source: Path) -> None:
    """Set the tensors of an objective; checkpoints of previous versions do not have them."""
    if objective is not None and any(name.startswith(_OBJECTIVE) for name in reader.metas):
        load_tensors(objective, reader, source, prefix=_OBJECTIVE)


@torch.no_grad()
def load_tensors(model: nn.Module, reader: TensorReader, source: Path, prefix: str = "") -> None:
    """Set parameters and buffers of a model, sharded or not; raise ZooError if they differ."""
    own = {f"{prefix}{name}": tensor for name, tensor in named_tensors(model).items()}
    for name, tensor in own.items():
        if name not in reader.metas or reader.metas[name].shape != tuple(tensor.shape):
            raise ZooError(
                f"{source} does not fit the model: '{name}' is missing or has another "
                "shape; start a new run in another folder"
            )
        local(tensor).copy_(local(shard_like(reader.read(name), tensor)))
