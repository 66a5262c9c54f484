"""Loading of artifacts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from zoo.acceleration.first_operations import prepare_operations
from zoo.artifact.base import BaseSource, complete_tensors, open_base
from zoo.artifact.hashing import check_files
from zoo.artifact.header import Header
from zoo.artifact.mapped_file import Artifact, open_artifact
from zoo.artifact.versions import resolve_versions
from zoo.artifact.weights import load_weights
from zoo.errors import ArtifactError
from zoo.interfaces import Model
from zoo.interfaces.module_parts import each_part
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import resolve_device, resolve_dtype
from zoo.spec.memory import check_memory, tensor_bytes


def load(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    verify: bool = False,
    registry: ComponentRegistry | None = None,
    base: BaseSource | None = None,
) -> Model:
    """Load a model from a file or a directory, in evaluation mode.

    Only the components of the spec's `model` section have to be installed.

    Args:
        dtype: dtype of the floating-point weights; default: as stored.
        verify: whether to check the hashes of the weights. The header is always checked.
        base: the base of a model that is saved without it, or how it is found; by default only
            files are found.
    """
    target = resolve_device(device)
    prepare_operations(target)
    float_dtype = None if dtype is None else resolve_dtype(dtype)
    artifact = open_artifact(path)
    if verify and not check_files(artifact.files):
        raise ArtifactError(
            f"{artifact.header.path} has format 1, which has no hashes to verify; "
            "load it without verify and save it again"
        )
    return build_model(artifact, registry or default_registry(), target, float_dtype, base)


def build_model(
    artifact: Artifact,
    registry: ComponentRegistry,
    device: torch.device,
    dtype: torch.dtype | None = None,
    base: BaseSource | None = None,
) -> Model:
    """Build the model of an open artifact, in evaluation mode."""
    header = artifact.header
    needs_base = header.base is not None or isinstance(base, Path)
    opened = open_base(artifact, base) if needs_base else None
    resolved = resolve_versions(header, complete_tensors(artifact, opened), registry)
    _check_memory(header, list(resolved.tensors.values()), device, dtype)
    model = load_weights(
        header.path,
        resolved.spec,
        resolved.tensors,
        device=device,
        dtype=dtype,
        registry=registry,
    )
    resolved.attach_unavailable(model)
    model.tokenizer = header.tokenizer or None
    model.base = None if opened is None else str(opened.header.path)
    return _set_evaluation_mode(model)


def _check_memory(
    header: Header, tensors: Sequence[Tensor], device: torch.device, dtype: torch.dtype | None
) -> None:
    """Raise ZooError if the weights are larger than the memory."""
    stays = [t for t in tensors if dtype in (None, t.dtype) and t.device == device]
    needed = tensor_bytes(tensors, dtype)
    check_memory(str(header.path), needed, device, mapped=tensor_bytes(stays))


def _set_evaluation_mode(model: Model) -> Model:
    """Return `model.eval()`; without calls and `nn.Module.__setattr__` if no module defines it."""
    modules = each_part(model)
    known = (nn.Module.train, Model.train)  # the latter does the same in evaluation mode
    if any(
        type(module).train not in known or type(module).eval is not nn.Module.eval
        for module in modules
    ):
        return model.eval()
    for module in modules:
        vars(module)["training"] = False
    return model


def read_header(path: str | os.PathLike[str]) -> Header:
    """Return everything in an artifact except the weights."""
    return open_artifact(path).header
