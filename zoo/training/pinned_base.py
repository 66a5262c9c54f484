"""The base of a training of adapters: checkpoints pin its weights by hash and do not save them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor, nn

from zoo.adapters import find_adapters
from zoo.artifact.base import (
    BasePin,
    MissingBase,
    complete_reader,
    open_base,
    pin_base,
    restrict_pin,
)
from zoo.artifact.hashing import check_files
from zoo.artifact.mapped_file import Artifact, open_artifact
from zoo.artifact.weights import named_tensors
from zoo.errors import ArtifactError, ZooError
from zoo.hub.base_model import BaseModel, find_base as open_model
from zoo.hub.models import find_base
from zoo.interfaces import Model
from zoo.interfaces.tensors import TensorReader


@dataclass(frozen=True)
class PinnedBase:
    """An open base, and the tensors of a run that are taken from it."""

    artifact: Artifact = field(repr=False)
    pin: BasePin

    def current(self, model: Model) -> BasePin | None:
        """Return the pin of what is frozen now; None if nothing is."""
        return restrict_pin(self.pin, self.artifact, frozen_names(model))


def find_pinned(
    model: Model, base: BaseModel | None, tensors: Mapping[str, Tensor], checkpoint: Path
) -> PinnedBase | None:
    """Return the base of a model with adapters; None for a model without one.

    Args:
        base: the base, if it is open.
        tensors: the tensors of the model by name, not sharded.
        checkpoint: the folder of a checkpoint, to which the path of the base is relative.
    """
    frozen = frozen_names(model)
    if model.base is None or not find_adapters(model) or not frozen:
        return None
    base = base or open_model(model.base)
    name, revision = _pinned_name(base, checkpoint)
    taken = {own: tensor for own, tensor in tensors.items() if own in frozen}
    return PinnedBase(base.artifact, pin_base(taken, base.artifact, name, revision))


def _pinned_name(base: BaseModel, checkpoint: Path) -> tuple[str, str | None]:
    """Return name and revision of a base; the path of a file is relative to a checkpoint."""
    if base.reference is not None:
        return base.reference, base.commit
    location = os.path.realpath(base.artifact.header.path)
    return os.path.relpath(location, os.path.realpath(checkpoint)), None


def frozen_names(model: Model) -> set[str]:
    """Return the names of the parameters that are not trained."""
    return {
        name
        for name, tensor in named_tensors(model).items()
        if isinstance(tensor, nn.Parameter) and not tensor.requires_grad
    }


def open_pinned(
    file: Path, *, verify: bool, base: str | None = None
) -> tuple[PinnedBase, TensorReader]:
    """Open the base of the model of a checkpoint; return it with all tensors of the model.

    Args:
        verify: compare the hashes of the tensors of the base.
        base: the base of the run, if it has another place since the checkpoint was saved.

    Raises:
        ZooError: if the base is missing, damaged, or has changed.
    """
    artifact = open_artifact(file)
    assert artifact.header.base is not None
    pin, advice = BasePin(**artifact.header.base), "start a new run in another folder"
    try:
        try:
            opened = open_base(artifact, find_base)
        except MissingBase as error:
            moved = _open_moved(base, error)
            opened = open_base(artifact, moved.artifact.header.path)
            name, revision = _pinned_name(moved, file.parent)
            pin = replace(pin, name=name, revision=revision)
        if verify:
            check_files(opened.files)
    except MissingBase as error:
        advice = f"if it was moved, give its new place with --from, or {advice}"
        raise ZooError(f"{error.fact}; {advice}") from None
    except ArtifactError as error:
        raise ZooError(f"{error}; restore the base, or {advice}") from None
    return PinnedBase(opened, pin), complete_reader(artifact, opened)


def _open_moved(base: str | None, error: MissingBase) -> BaseModel:
    """Return the base of a run by its name; raise the error if there is no such model either."""
    try:
        if base is not None:
            return open_model(base)
    except ZooError:
        pass
    raise error
