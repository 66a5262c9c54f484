"""Artifacts with a part of a model, whose other tensors are those of a base, pinned by hash."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.adapters import ADAPTERS
from zoo.artifact.header import Header
from zoo.artifact.layout import hash_json
from zoo.artifact.mapped_file import Artifact, open_artifact
from zoo.errors import ArtifactError, ZooError, one_line
from zoo.interfaces.tensors import TensorMeta, TensorReader

FindBase = Callable[[str, str | None], Path]
"""Returns the path of a base, given its name and revision; raises ZooError if it is missing."""
BaseSource = FindBase | Path
"""How a base is found if it is not a file at the place that the artifact names; or its path, which
is used instead of that place."""


class MissingBase(ArtifactError):
    """Raised for an artifact whose base is not where it should be.

    Args:
        fact: what is expected where.
        advice: what the user can do.
    """

    def __init__(self, fact: str, advice: str) -> None:
        super().__init__(f"{fact}; {advice}")
        self.fact = fact


@dataclass(frozen=True)
class BasePin:
    """The base of an artifact.

    Attributes:
        name: a path relative to the folder of the artifact, the name of a shipped model, or a
            repository.
        revision: the commit of a repository.
        sha256: one hash of all tensors that are taken from the base.
        tensors: name in the base of each tensor that is taken from it, by its name in the model.
    """

    name: str
    revision: str | None
    sha256: str
    tensors: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "tensors": dict(self.tensors)}


def pin_base(
    tensors: Mapping[str, Tensor], base: Artifact, name: str, revision: str | None = None
) -> BasePin:
    """Return the pin of a base that has some of the tensors, with equal values.

    Raises:
        ArtifactError: if the base has none of the tensors, or no hashes.
    """
    if base.header.base is not None:
        raise ArtifactError(f"{name} is itself a part of a model; use its base, or merge it first")
    shared = _find_shared(tensors, base)
    if not shared:
        raise ArtifactError(f"{name} is not the base of this model: they have no tensor in common")
    return BasePin(name, revision, _hash(base.header, name, shared), shared)


def restrict_pin(pin: BasePin, base: Artifact, names: Collection[str]) -> BasePin | None:
    """Return the pin of those of its tensors that have these names in the model; None if there are
    none."""
    tensors = {own: other for own, other in pin.tensors.items() if own in names}
    if len(tensors) == len(pin.tensors):
        return pin
    sha256 = _hash(base.header, pin.name, tensors)
    return replace(pin, sha256=sha256, tensors=tensors) if tensors else None


def open_base(artifact: Artifact, source: BaseSource | None = None) -> Artifact:
    """Open the base of an artifact.

    Args:
        source: the path of the base, or how it is found if it is not a file at the place that the
            artifact names.

    Raises:
        MissingBase: if there is no base.
        ArtifactError: if the artifact needs none, or its tensors are not those of the pin.
    """
    header = artifact.header
    if header.base is None:
        raise ArtifactError(f"{header.path} has all its weights, so it has no base")
    pin = BasePin(**header.base)
    path = source if isinstance(source, Path) else _locate(header, pin, source)
    base = open_artifact(path)
    if _hash(base.header, str(path), pin.tensors) != pin.sha256:
        raise ArtifactError(
            f"{header.path} belongs to another version of its base: the weights of {path} have "
            "changed since, or it is another model"
        )
    return base


def _locate(header: Header, pin: BasePin, find: FindBase | None) -> Path:
    """Return the path of a base; raise MissingBase if there is none."""
    expected = header.path.parent / pin.name
    if os.path.exists(expected):
        return expected
    reason = ""
    if find is not None:
        try:
            if os.path.exists(found := find(pin.name, pin.revision)):
                return found
        except ZooError as error:
            reason = f" ({error})"
    place = pin.name if pin.revision is None else f"{pin.name}@{pin.revision}"
    if pin.revision is None and any(each in pin.name for each in "./"):
        place, reason = os.path.normpath(expected), ""
    recorded = header.provenance.get("base")
    hashed = f"{len(pin.tensors)} tensors with sha256 {pin.sha256}"
    if isinstance(recorded, dict) and isinstance(recorded.get("sha256"), str):
        hashed = f"model hash {one_line(recorded['sha256'][:64])}"
    raise MissingBase(
        f"{header.path}: its base is missing; expected {place}, {hashed}{reason}",
        "if it was moved, give its new place with --base (in Python: zoo.load(..., base=...))",
    )


def complete_tensors(artifact: Artifact, base: Artifact | None) -> Mapping[str, Tensor]:
    """Return all tensors of the model of an artifact: its own, and those of its base.

    Floating-point tensors of the base get the dtype of the artifact's own.
    """
    if base is None:
        return artifact
    reader = complete_reader(artifact, base)
    return {name: reader.read(name) for name in reader.metas}


def complete_reader(artifact: Artifact, base: Artifact) -> TensorReader:
    """Return a reader of the tensors that `complete_tensors` returns."""
    assert artifact.header.base is not None
    names = artifact.header.base["tensors"]
    dtype = next((t.dtype for t in artifact.values() if t.is_floating_point()), None)

    def read(name: str) -> Tensor:
        if name in artifact:
            return artifact[name]
        tensor = base[names[name]]
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    def meta(name: str) -> TensorMeta:
        found = TensorMeta.of(base[names[name]])
        is_float = dtype is not None and found.dtype.is_floating_point
        return TensorMeta(found.shape, dtype) if is_float and dtype else found

    metas = {name: meta(name) for name in names}
    return TensorReader(metas | {name: TensorMeta.of(t) for name, t in artifact.items()}, read)


def _find_shared(tensors: Mapping[str, Tensor], base: Artifact) -> dict[str, str]:
    """Return the name in the base of each tensor with equal values; the same name is preferred."""
    by_shape: dict[tuple[int, ...], list[str]] = {}
    for name, (_, shape) in base.header.tensors.items():
        by_shape.setdefault(shape, []).append(name)
    shared: dict[str, str] = {}
    for own, tensor in tensors.items():
        names = sorted(by_shape.get(tuple(tensor.shape), ()), key=lambda name: name != own)
        if own.startswith(f"{ADAPTERS}."):
            continue
        for name in names:
            if _is_equal(tensor, base[name]):
                shared[own] = name
                break
    return shared


def _is_equal(own: Tensor, other: Tensor) -> bool:
    """Return whether a tensor has the values of a stored one, which may have another dtype."""
    return own.shape == other.shape and torch.equal(own.detach().cpu(), other.to(own.dtype))


def _hash(header: Header, name: str, tensors: Mapping[str, str]) -> str:
    if header.hashes is None:
        raise ArtifactError(f"{name} has format 1, which has no hashes; save it again")
    return hash_json({other: header.hashes.get(other) for other in sorted(set(tensors.values()))})
