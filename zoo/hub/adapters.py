"""Adapters in files: saved without the base of their model, and added to a model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from zoo.adapters import ADAPTERS, find_adapters, use_adapters
from zoo.artifact.base import BasePin, MissingBase, open_base, pin_base
from zoo.artifact.header import Header
from zoo.artifact.loading import load, read_header
from zoo.artifact.mapped_file import Artifact, open_artifact
from zoo.artifact.saving import save
from zoo.artifact.weights import named_tensors
from zoo.errors import ArtifactError, HubError
from zoo.hub.models import Source, base_reference, find, find_base
from zoo.hub.shipped import is_shipped
from zoo.interfaces import Model
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.adaptation import add_adapters
from zoo.spec.providers import used_by

Adapters = Mapping[str, Any]


def adapt(
    model: Model,
    source: Source | Adapters,
    *,
    name: str | None = None,
    seed: int = 0,
    registry: ComponentRegistry | None = None,
) -> Model:
    """Add an adapter to a model and use it, without those that the model had; return the model.

    Only the parameters of this adapter require gradients afterwards: those of the model and of
    adapters that it had are frozen. ``model.adapters.NAME.requires_grad_()`` also trains another.

    Args:
        source: an adapter as in a spec, ``{"type": "lora", "targets": ["*.query"]}``, or a saved
            one: a path, or a repository of the Hub.
        name: name of the adapter in the model; default: ``adapter``, or the name in the file.
        seed: random seed of the initial values.

    Raises:
        SpecError: if the adapter is not valid, or a pattern matches no module.
        ArtifactError: if the file belongs to another base than this model.
    """
    if isinstance(source, Mapping):
        added = [name or "adapter"]
        add_adapters(model, {added[0]: dict(source)}, seed=seed, registry=registry)
    else:
        added = _add_from_file(model, open_artifact(find(source)), name, registry)
    model.requires_grad_(False)
    for each in added:
        find_adapters(model)[each].requires_grad_()
    use_adapters(model, *added)
    return model


def save_adapter(
    model: Model,
    path: str | os.PathLike[str],
    *,
    base: Source | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Path:
    """Save a model without the tensors of its base, which is pinned by its hash.

    The file has the adapters in use and every other tensor that differs from the base. `zoo.load`
    finds the base: a path relative to the file, the name of a shipped model, or a repository.

    Args:
        base: the saved model whose weights the model has; default: the one it was loaded from.

    Raises:
        ArtifactError: if the base is not known, or has no tensor in common with the model.
    """
    base = base or model.base
    if base is None:
        raise ArtifactError("the base of this model is not known; pass base, its saved model")
    location, reference, revision = base_reference(base)
    if reference is None:
        reference = os.path.relpath(os.path.realpath(location), os.path.realpath(Path(path).parent))
    elif revision is not None:
        provenance = {"base_model": reference, **(provenance or {})}
    with _only_used(model):
        pin = pin_base(named_tensors(model), open_artifact(location), reference, revision)
        return save(model, path, provenance=provenance, base=pin)


def load_shareable(path: Path) -> Model:
    """Load a model; raise HubError if its base is a local file, which others do not have."""
    header = read_header(path)
    if header.base is not None and _is_local(header):
        raise HubError(
            f"{path} needs its base, the local file {header.base['name']}; push the base first and "
            "save the adapter with base='org/name', or merge it with 'zoo merge'"
        )
    return load(path, base=find_base)


def _is_local(header: Header) -> bool:
    """Return whether the base of an artifact is a file, which is perhaps missing."""
    assert header.base is not None
    name, revision = header.base["name"], header.base["revision"]
    return (header.path.parent / name).exists() or (revision is None and not is_shipped(name))


@contextmanager
def _only_used(model: Model) -> Iterator[None]:
    """Remove the adapters that are off from a model inside the block."""
    owner = model._modules.get(ADAPTERS)
    off = {name: each for name, each in find_adapters(model).items() if not each.enabled}
    spec, paths, providers = model.spec, model.component_paths, model.providers
    try:
        if owner is not None and off and spec is not None:
            for name in off:
                del owner._modules[name]
            kept = {name: each for name, each in spec[ADAPTERS].items() if name not in off}
            model.spec = {**spec, ADAPTERS: kept}
            dropped = {f"{ADAPTERS}.{name}" for name in off}
            model.component_paths = tuple(row for row in paths if row["path"] not in dropped)
            model.providers = tuple(used_by(model.spec, providers))
        yield
    finally:
        if owner is not None:
            owner._modules.update(off)
        model.spec, model.component_paths, model.providers = spec, paths, providers


def _add_from_file(
    model: Model, artifact: Artifact, name: str | None, registry: ComponentRegistry | None
) -> list[str]:
    """Add the adapters of a file to a model, and return their names."""
    header = artifact.header
    section: dict[str, Any] = header.spec.get(ADAPTERS) or {}
    if not section:
        raise ArtifactError(f"{header.path} has no adapters; load it with zoo.load")
    _check_base(model, artifact)
    names = {old: _new_name(old, name, len(section)) for old in section}
    added = {names[old]: data for old, data in section.items()}
    add_adapters(model, added, registry=registry)
    own = named_tensors(model)
    with torch.no_grad():
        for tensor_name in artifact:
            _, old, rest = tensor_name.split(".", 2)
            target = own[f"{ADAPTERS}.{names[old]}.{rest}"]
            target.copy_(artifact[tensor_name])
    return list(added)


def _new_name(old: str, name: str | None, count: int) -> str:
    """Return the name of an adapter of a file in a model."""
    if name is None:
        return old
    return name if count == 1 else f"{name}_{old}"


def _check_base(model: Model, artifact: Artifact) -> None:
    """Raise ArtifactError unless a model has the weights of the base of an artifact."""
    header = artifact.header
    others = [name for name in artifact if not name.startswith(f"{ADAPTERS}.")]
    if header.base is None or others:
        raise ArtifactError(
            f"{header.path} also has weights of the model itself; load it with zoo.load"
        )
    try:
        base = open_base(artifact, find_base)
    except MissingBase:
        if model.base is None:
            raise
        base = open_base(artifact, find(model.base))
    pin = BasePin(**header.base)
    own = named_tensors(model)
    for name, other in pin.tensors.items():
        expected = base[other]
        found = own.get(name)
        if found is None or found.shape != expected.shape or not _is_same(found, expected):
            raise ArtifactError(
                f"{header.path} is an adapter of {pin.name}, but this model has another '{name}'"
            )


def _is_same(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.equal(found.detach().cpu(), expected.to(found.dtype))
