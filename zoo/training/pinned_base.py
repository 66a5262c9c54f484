"""The base of a training of adapters: checkpoints pin its weights by hash and do not save them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor, nn

from zoo.adapters import find_adapters
from zoo.artifact.base import BasePin, complete_reader, open_base, pin_base, restrict_pin
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
    name = base.reference
    if name is None:
        location = os.path.realpath(base.artifact.header.path)
        name = os.path.relpath(location, os.path.realpath(checkpoint))
    taken = {own: tensor for own, tensor in tensors.items() if own in frozen}
    return PinnedBase(base.artifact, pin_base(taken, base.artifact, name, base.commit))


def frozen_names(model: Model) -> set[str]:
    """Return the names of the parameters that are not trained."""
    return {
        name
        for name, tensor in named_tensors(model).items()
        if isinstance(tensor, nn.Parameter) and not tensor.requires_grad
    }


def open_pinned(file: Path, *, verify: bool) -> tuple[PinnedBase, TensorReader]:
    """Open the base of the model of a checkpoint; return it with all tensors of the model.

    Args:
        verify: compare the hashes of the tensors of the base.

    Raises:
        ZooError: if the base is missing, damaged, or has changed.
    """
    artifact = open_artifact(file)
    assert artifact.header.base is not None
    try:
        base = open_base(artifact, find_base)
        if verify:
            check_files(base.files)
    except ArtifactError as error:
        advice = "restore the base, or start a new run in another folder"
        raise ZooError(f"{error}; {advice}") from None
    return PinnedBase(base, BasePin(**artifact.header.base)), complete_reader(artifact, base)
