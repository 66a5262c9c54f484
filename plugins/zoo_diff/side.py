"""One of the two things that are compared: a spec, or a saved model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from zoo import artifact
from zoo.errors import RegistryError, ZooError, suggest
from zoo.evaluation.evaluating import training_section
from zoo.files import is_safetensors
from zoo.hub.catalogue import load_catalogue
from zoo.hub.models import find, find_base
from zoo.hub.reference import is_repository
from zoo.interfaces import Model
from zoo.registry.component_registry import default_registry
from zoo.spec.composition import build_on_meta
from zoo.spec.document import Document
from zoo.spec.extending import merge_source
from zoo.spec.spec import Spec, load_spec
from zoo.training.composing import compose

MAX_BYTES = 4_000_000_000
"""The weights of a larger spec are not allocated."""


@dataclass(frozen=True)
class Side:
    """A spec or a model.

    Attributes:
        name: the argument that names it.
        kind: "spec" or "model".
        settings: the resolved spec.
        tensors: the weights by name; of a spec they are those of the seed, or on the meta device.
        model: None if the model cannot be run, for the `reason`.
        document: the text of a spec, with the line of each value.
        hashes: the sha256 of each stored tensor.
    """

    name: str
    kind: str
    settings: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    model: Model | None
    reason: str = ""
    document: Document | None = None
    hashes: Mapping[str, str] = field(default_factory=dict)


def open_side(
    name: str, *, seed: int = 0, as_spec: bool = False, with_weights: bool = True
) -> Side:
    """Open a spec or a model.

    Args:
        name: a file or folder, the name of a shipped model or of a spec, or ``org/name``.
        seed: random seed of the weights of a spec.
        as_spec: whether a name that both a spec and a shipped model have is the spec.
        with_weights: whether to build the model of a spec.
    """
    if not as_spec and not is_spec(name):
        return _open_model(name)
    document = merge_source(name, (), default_registry())
    spec = load_spec(document)
    side = Side(name, "spec", spec.resolve(), {}, None, document=document)
    return _add_weights(side, spec, seed) if with_weights else side


def is_spec(name: str) -> bool:
    """Return whether a name is that of a spec, and not of a model; raise if it is neither."""
    if os.path.isfile(name):
        with open(name, "rb") as file:
            head, size = file.read(9), os.fstat(file.fileno()).st_size
        return not is_safetensors(head, size) and not name.endswith((".safetensors", ".json"))
    if name.endswith((".yaml", ".yml")):
        return True
    if os.path.exists(name) or is_repository(name) or name.endswith(".safetensors"):
        return False
    models = load_catalogue().models
    if any(model.name == name and model.shipped for model in models):
        return False
    specs, published = default_registry().specs, [model.name for model in models if model.weights]
    if name not in specs and name not in published:
        known = [*specs, *published]
        tail = suggest(name, known, list_command="zoo list --specs' and 'zoo catalogue")
        raise RegistryError(f"no file, spec or model named '{name}'{tail}")
    return name in specs


def _add_weights(side: Side, spec: Spec, seed: int) -> Side:
    """Return the spec with its model, with the weights of a seed if they are not too large."""
    tensors = artifact.named_tensors(build_on_meta(spec).part)
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    if size > MAX_BYTES:
        reason = f"{side.name} has weights of {size:,} bytes; at most {MAX_BYTES:,} are allocated"
        return replace(side, tensors=tensors, reason=reason)
    model = compose(side.name, seed=seed)
    return replace(side, tensors=artifact.named_tensors(model), model=model)


def _open_model(name: str) -> Side:
    path = find(name)
    header = artifact.read_header(path)
    train = training_section(header.provenance)
    trained = {"train": dict(train)} if train else {}
    hashes = header.hashes or {}
    try:
        model = artifact.load(path, base=find_base)
    except ZooError as error:  # components of the model are not installed, for example
        stored = dict(artifact.open_artifact(path))
        return Side(name, "model", header.spec | trained, stored, None, str(error), hashes=hashes)
    settings = {**(model.spec or header.spec), **trained}
    tensors = artifact.named_tensors(model)
    current = {n: h for n, h in hashes.items() if _is_stored(tensors.get(n), header.tensors[n])}
    return Side(name, "model", settings, tensors, model, hashes=current)


def _is_stored(tensor: Tensor | None, stored: tuple[str, tuple[int, ...]]) -> bool:
    """Return whether a tensor has the stored shape; a migration can change it."""
    return tensor is not None and tuple(tensor.shape) == stored[1]


def to_full_precision(model: Model, device: torch.device) -> Model:
    """Return the model on a device in evaluation mode; half-precision weights become float32."""
    low = any(p.dtype in (torch.bfloat16, torch.float16) for p in model.parameters())
    moved: Model = model.to(device=device, dtype=torch.float32 if low else None)
    return moved.eval()
