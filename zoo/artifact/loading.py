"""Artifact to model: strict, straight to the device, running no code from the file."""

from __future__ import annotations

import os

import torch

from zoo.artifact.hashing import check_files
from zoo.artifact.header import Header
from zoo.artifact.mapped_file import open_artifact
from zoo.artifact.versions import resolve_versions
from zoo.artifact.weights import load_weights
from zoo.errors import ArtifactError
from zoo.interfaces import Model
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import resolve_device, resolve_dtype


def load(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    verify: bool = False,
    registry: ComponentRegistry | None = None,
) -> Model:
    """The model in a file or a directory, bit for bit; refused if anything does not fit.

    Args:
        dtype: what floating-point weights become; as they are stored if not set.
        verify: whether to hash the weights first; the header is checked in any case.
    """
    place = resolve_device(device)
    kind = None if dtype is None else resolve_dtype(dtype)
    artifact = open_artifact(path)
    if verify and not check_files(artifact.files):
        raise ArtifactError(
            f"{artifact.header.path} is of format 1, which has no hashes to verify; "
            "load it without verify, and save it again"
        )
    header = artifact.header
    spec, tensors = resolve_versions(header, artifact, registry or default_registry())
    model = load_weights(header.path, spec, tensors, device=place, dtype=kind)
    model.tokenizer = header.tokenizer or None
    return model


def read_header(path: str | os.PathLike[str]) -> Header:
    """Everything in an artifact but the weights."""
    return open_artifact(path).header
