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

from zoo.artifact.checkpoint import write_tensors
from zoo.artifact.mapped_file import MappedFile
from zoo.artifact.saving import is_main_process, save
from zoo.artifact.weights import named_tensors
from zoo.errors import ZooError
from zoo.files import fsync_path, remove_stale, staging_dir
from zoo.interfaces import Model
from zoo.interfaces.tensors import TensorMeta, TensorReader
from zoo.training.optimiser_state import optimiser_numbers, optimiser_tensors, restore_optimiser
from zoo.training.sharding import local, shard_like
from zoo.training.stored_checkpoint import (
    FORMAT,
    HASHES,
    MODEL_FILE,
    STATE_FILE,
    TENSOR_FILE,
    StoredCheckpoint,
    hash_state,
)

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
    ``optimiser.safetensors`` and ``state.json``, with the hashes of all three. In distributed
    training only rank 0 writes.

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
        ZooError: if there is no checkpoint, it belongs to another model or optimiser, or a file of
            it is damaged.
    """
    found = Path(path)
    if not (found / STATE_FILE).exists():
        checkpoints = find_checkpoints(found)
        if not checkpoints:
            raise ZooError(f"{path} does not contain a checkpoint")
        found = checkpoints[-1]
    stored = StoredCheckpoint.open(found)
    check_tensors(model, stored.model, found)
    restore_optimiser(model, optimiser, stored.tensors, stored.data["optimiser"])
    load_tensors(model, stored.model, found)
    restore_objective(objective, stored.tensors, found)
    return {**stored.data["state"], "step": stored.data["step"]}


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
        text = json.dumps(add_hashes(state, new))
        (new / STATE_FILE).write_text(text, encoding="utf-8")
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


def add_hashes(state: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the state of a checkpoint with the hashes of its files in a folder, and its own."""
    data: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, **state}))
    files = {name: MappedFile(folder / name).sha256() for name in (MODEL_FILE, TENSOR_FILE)}
    return {**data, HASHES: {**files, STATE_FILE: hash_state(data)}}


def check_tensors(model: nn.Module, reader: TensorReader, source: Path, prefix: str = "") -> None:
    """Raise ZooError unless names, shapes and dtypes are those of a model, sharded or not.

    Other dtypes of floating-point numbers are converted.

    Args:
        prefix: only tensors whose names start with it are compared, without it.
    """
    own = _prefixed(model, prefix)
    stored = [name for name in reader.metas if name.startswith(prefix)]
    for name in dict.fromkeys((*own, *stored)):
        meta, tensor = reader.metas.get(name), own.get(name)
        if meta is None or tensor is None:
            problem = "is missing" if meta is None else "is not a tensor of the model"
        elif meta.shape != tuple(tensor.shape):
            problem = f"has the shape {list(meta.shape)}, expected {list(tensor.shape)}"
        elif meta.dtype != tensor.dtype and not are_floats(meta.dtype, tensor.dtype):
            problem = f"is {meta.dtype}, expected {tensor.dtype}"
        else:
            continue
        raise ZooError(
            f"{source} does not fit the model: '{name}' {problem}; start a new run in another "
            "folder"
        )


def _prefixed(model: nn.Module, prefix: str) -> dict[str, Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in named_tensors(model).items()}


def are_floats(*dtypes: torch.dtype) -> bool:
    """Return whether all dtypes are floating-point numbers of 16 bits or more."""
    return all(dtype.is_floating_point and dtype.itemsize >= 2 for dtype in dtypes)


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
    check_tensors(model, reader, source, prefix)
    for name, tensor in _prefixed(model, prefix).items():
        local(tensor).copy_(local(shard_like(reader.read(name), tensor)))
