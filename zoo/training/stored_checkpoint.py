"""A checkpoint that is read: its files are checked before a value of them is used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from zoo.artifact.layout import hash_json
from zoo.artifact.mapped_file import MappedFile
from zoo.errors import ZooError
from zoo.interfaces.tensors import TensorReader
from zoo.training.pinned_base import PinnedBase, open_pinned
from zoo.training.run_files import DamagedFile, open_tensor_file, read_json
from zoo.training.state import RunState

MODEL_FILE = "model.safetensors"
TENSOR_FILE = "optimiser.safetensors"
STATE_FILE = "state.json"
HASHES = "sha256"
"""Key of the hashes in `STATE_FILE`: those of the other files, and of the rest of this one."""
FORMAT = 2
"""Format 1 has no hashes."""

_NAME = re.compile(r"step-(\d{8,})")


class _Stored(BaseModel):
    """What the state of every checkpoint has."""

    step: int
    optimiser: dict[str, dict[str, Any]]
    state: dict[str, Any]


class _StoredRun(_Stored):
    """What the state of a checkpoint of `zoo train` has."""

    world: int
    examples: int
    spec: dict[str, Any]


class _Best(BaseModel):
    name: str
    value: float
    step: int
    values: dict[str, float]


@dataclass(frozen=True)
class StoredCheckpoint:
    """An open checkpoint.

    Attributes:
        path: its folder.
        data: the content of ``state.json``.
        model: the tensors of the model.
        tensors: all other tensors: those of the optimiser, and of a run.
        base: the base whose tensors the model has, if they are not saved again.
    """

    path: Path
    data: dict[str, Any]
    model: TensorReader
    tensors: TensorReader
    base: PinnedBase | None = None

    @classmethod
    def open(cls, path: Path, *, verify: bool = True, base: str | None = None) -> StoredCheckpoint:
        """Open a checkpoint.

        Args:
            verify: compare the hashes of the tensors. Checkpoints of previous versions have none.
            base: the base of the run, if it has another place since the checkpoint was saved.

        Raises:
            DamagedFile: if a file is missing, is not valid, or was changed.
            ZooError: if the base of the model is missing or was changed.
        """
        data, advice = read_state(path), find_advice(path)
        hashes = data.get(HASHES, {}) if verify else {}
        model, pinned = _open_model(path, hashes.get(MODEL_FILE), verify=verify, base=base)
        tensors = open_tensor_file(path / TENSOR_FILE, hashes.get(TENSOR_FILE), advice)
        return cls(path, data, model, tensors, pinned)

    def damage(self, name: str, reason: str) -> DamagedFile:
        """Return the error of a file of this checkpoint."""
        return DamagedFile(self.path / name, reason, find_advice(self.path))

    def run_data(self) -> dict[str, Any]:
        """Return the state of a checkpoint of `zoo train`.

        Raises:
            ZooError: if another training loop has saved it.
        """
        if "spec" not in self.data:
            raise ZooError(
                f"{self.path} was saved by a training loop of its own (zoo.save_checkpoint), not "
                "by 'zoo train'; continue it there with zoo.load_checkpoint, or use another folder"
            )
        _check_types(self.path, _StoredRun, self.data)
        return self.data

    def run_state(self) -> RunState:
        """Return the state of a run; raise DamagedFile if it is not one."""
        data = self.run_data()
        state: dict[str, Any] = data["state"]
        _check_types(self.path, RunState, state)
        if state.get("best") is not None:
            _check_types(self.path, _Best, state["best"])
        try:
            return RunState.from_json(state)
        except (TypeError, KeyError, ValueError) as error:
            raise self.damage(STATE_FILE, f"its state is not valid ({error})") from None


def read_state(path: Path) -> dict[str, Any]:
    """Return the state of a checkpoint; raise DamagedFile if it is not valid or was changed."""
    file, advice = path / STATE_FILE, find_advice(path)
    data = read_json(file, advice)
    _check_types(path, _Stored, data)
    name = _NAME.fullmatch(path.name)
    if name and int(name[1]) != data["step"]:
        raise DamagedFile(file, f"it belongs to step {data['step']:,}", advice)
    if HASHES in data or data.get("format", 1) != 1:
        _check_types(path, dict[str, str], data.get(HASHES, {}))
        if data.get(HASHES, {}).get(STATE_FILE) != hash_state(data):
            raise DamagedFile(file, "its content changed after it was saved", advice)
    return data


def open_model(path: Path, base: str | None = None) -> TensorReader:
    """Return the tensors of the model of a checkpoint, after a comparison with their hash.

    Args:
        base: the base of the run, if it has another place since the checkpoint was saved.
    """
    hashes = read_state(path).get(HASHES, {})
    return _open_model(path, hashes.get(MODEL_FILE), verify=False, base=base)[0]


def _open_model(
    path: Path, sha256: str | None, *, verify: bool, base: str | None
) -> tuple[TensorReader, PinnedBase | None]:
    """Return the tensors of the model of a checkpoint, and its base if it is pinned."""
    file = path / MODEL_FILE
    reader = open_tensor_file(file, sha256, find_advice(path))
    if "base" not in MappedFile(file).layout.metadata:
        return reader, None
    pinned, complete = open_pinned(file, verify=verify, base=base)
    return complete, pinned


def hash_state(data: Mapping[str, Any]) -> str:
    """Return the hash of the state of a checkpoint, JSON values, without its hashes."""
    return hash_json({key: value for key, value in data.items() if key != HASHES})


def find_advice(path: Path) -> str:
    """Return what to do about a damaged checkpoint: a sentence with the one before it."""
    own = _NAME.fullmatch(path.name)
    older = sorted(
        int(match[1])
        for entry in (path.parent.iterdir() if own and path.parent.is_dir() else ())
        if own and (match := _NAME.fullmatch(entry.name)) and int(match[1]) < int(own[1])
    )
    if older:
        return f"remove {path} to continue from step-{older[-1]:08d}, or start a new run"
    return f"remove {path} and start a new run"


def _check_types(path: Path, kind: Any, data: Any) -> None:
    """Raise DamagedFile if JSON values are not those of a class, with the first difference."""
    try:
        TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(key) for key in first["loc"])
        reason = f"{where}: {first['msg'].lower()}" if where else first["msg"].lower()
        raise DamagedFile(path / STATE_FILE, reason, find_advice(path)) from None
