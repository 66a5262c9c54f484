"""Checks before anything is written: the files can be read, and give the same model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from zoo.artifact.file_contents import FileContents
from zoo.artifact.header import Header, header_from_file, header_from_shards
from zoo.artifact.mapped_file import MAX_SHARDS
from zoo.artifact.probe import compare_probe
from zoo.artifact.remote_header import RemoteFile
from zoo.artifact.versions import resolve_versions
from zoo.artifact.weights import load_weights
from zoo.errors import ArtifactError
from zoo.interfaces import Model
from zoo.registry.blueprint import format_error
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.registry.plugin_call import PluginCall


def check_loadable(
    path: str | os.PathLike[str],
    model: Model,
    tensors: Mapping[str, Tensor],
    contents: FileContents,
) -> None:
    """Raise ArtifactError unless `load` returns a model with the same outputs from the contents.

    The rules are those of the reader: headers are encoded and parsed, the model is built from the
    spec and compared with the tensors, and its outputs are compared with the probe.
    """
    try:
        header = parse_headers(Path(path), contents)
        entries = model.component_entries
        registry = ComponentRegistry(entries=entries) if entries else default_registry()
        resolved = resolve_versions(header, tensors, registry)
        rebuilt = load_weights(path, resolved.spec, resolved.tensors)
        _check_outputs(path, rebuilt, header.probe)
    except ArtifactError as error:
        raise ArtifactError(
            "this model cannot be saved, because it could not be loaded again; nothing was "
            f"written:\n{error}"
        ) from error


def _check_outputs(path: object, rebuilt: Model, probe: Mapping[str, Any] | None) -> None:
    """Raise ArtifactError if the model built from the spec has other outputs than the probe."""
    if probe is None or "skipped" in probe:
        return
    try:
        with PluginCall():
            differences = compare_probe(rebuilt, probe)
    except Exception as error:
        raise ArtifactError(
            f"{path}: the model of the spec does not run on its example: {format_error(error)}"
        ) from error
    if differences:
        raise ArtifactError(
            f"{path}: the model of the spec computes other outputs: {'; '.join(differences)}; "
            "a part was replaced or changed after the model was composed"
        )


def parse_headers(path: Path, contents: FileContents) -> Header:
    """Return the header that the files would have, parsed and validated."""
    count = len(contents.shards)
    if count > MAX_SHARDS:
        raise ArtifactError(
            f"{path} would have {count:,} shards; at most {MAX_SHARDS:,} are allowed; set a larger "
            "shard_bytes"
        )
    model_id = contents.identity()

    def parse(file: Path, number: int) -> RemoteFile:
        header = contents.header(number, model_id)
        size = len(header) + contents.data_bytes(number)
        return RemoteFile(file, size, lambda count: header[:count])

    if count == 1:
        return header_from_file(parse(path, 0))
    files = [parse(path / f"{number}.safetensors", number) for number in range(count)]
    weight_map = {name: files[number].path.name for name, number in contents.shard_of.items()}
    return header_from_shards(path, weight_map, model_id, files)
