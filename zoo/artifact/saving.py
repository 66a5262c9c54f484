"""Saving of artifacts. Each tensor is hashed as it is written."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.about import version
from zoo.artifact.atomic_write import write_shards, write_single_file
from zoo.artifact.header import FORMAT, identity
from zoo.artifact.layout import Layout, layout_tensors, tensor_bytes
from zoo.artifact.probe import record_probe
from zoo.artifact.weights import load_weights, named_tensors
from zoo.errors import ArtifactError, SpecError
from zoo.files import os_error_message
from zoo.interfaces import Model
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.spec import load_spec

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_HASH_PLACEHOLDER = "0" * 64
"""Has the length of a hash, until the tensors have been written."""


def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    provenance: Mapping[str, Any] | None = None,
    shard_bytes: int | str | None = None,
    probe: bool = True,
) -> Path:
    """Save a model. An existing model is replaced atomically.

    In distributed training only rank 0 writes. On Windows a file cannot be replaced while a model
    loaded from it is in use.

    Args:
        path: a file, or with `shard_bytes` a directory.
        provenance: information on how the model was made, such as data, seed and metrics, as JSON
            values.
        shard_bytes: the maximum size of one file, for example 2_000_000_000 or "2GB".
        probe: whether to store a small input with the model's outputs, for `zoo verify`.
    """
    if not isinstance(model, Model):
        raise ArtifactError(
            f"{path} was not written: expected a model of the zoo, for example from zoo.compose, "
            f"but got {type(model).__name__}"
        )
    if model.spec is None:
        raise ArtifactError(
            "this model cannot be saved: it was not composed from a spec of registered components"
        )
    tensors = named_tensors(model)
    if any(tensor.is_meta for tensor in tensors.values()):
        raise ArtifactError(
            "this model cannot be saved: it is on the meta device and has no weights"
        )
    max_bytes = None if shard_bytes is None else _parse_bytes(shard_bytes)
    if not is_main_process():
        return Path(path)
    metadata = _build_metadata(model, provenance or {}, probe)
    try:
        # Replace the target of a symbolic link, not the link.
        target = Path(os.path.realpath(path))
        if max_bytes is None:
            if target.is_dir():
                raise ArtifactError(
                    f"{path} is a directory; use a file name such as {path}/model.safetensors"
                )
            write_single_file(
                target, lambda temp_path: _write_files([temp_path], [tensors], metadata)
            )
        else:
            if target.suffix == ".safetensors" or target.is_file():
                raise ArtifactError(f"{path} is a file name; shards are saved to a directory")
            shards = _split_into_shards(tensors, max_bytes)
            shard_of = {name: n for n, shard in enumerate(shards) for name in shard}
            write_shards(
                target, shard_of, len(shards), lambda files: _write_files(files, shards, metadata)
            )
    except (OSError, ValueError) as error:
        unchanged = "; the existing file is unchanged" if os.path.exists(path) else ""
        raise ArtifactError(
            f"{path} could not be written: {os_error_message(error)}{unchanged}"
        ) from error
    return target


def write(
    spec: Mapping[str, Any],
    providers: Sequence[Mapping[str, Any]] | None,
    tensors: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]],
    path: str | os.PathLike[str],
    *,
    provenance: Mapping[str, Any] | None = None,
    tokenizer: Mapping[str, str] | None = None,
    shard_bytes: int | str | None = None,
    probe: bool = True,
    registry: ComponentRegistry | None = None,
) -> Path:
    """Write an artifact from a spec and named tensors, without copying the tensors.

    Args:
        providers: the providers of the components; default: the installed ones.
        tensors: the tensors of the spec's model, no more and no less.
    """
    try:
        resolved = load_spec(spec, registry=registry)
    except SpecError as error:
        raise ArtifactError(
            f"{path}: the spec is not valid with the installed components:\n{error}"
        ) from None
    model = load_weights(path, resolved, dict(tensors), device=torch.device("cpu"))
    if providers is not None:
        model.providers = tuple(providers)
    model.tokenizer = tokenizer
    return save(model, path, provenance=provenance, shard_bytes=shard_bytes, probe=probe)


def is_main_process() -> bool:
    """Return whether this process is rank 0, which writes files."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank() == 0
    return os.environ.get("RANK", "0") in ("", "0")


def _build_metadata(model: Model, provenance: Mapping[str, Any], probe: bool) -> dict[str, str]:
    """Return the metadata of an artifact, as JSON texts."""
    about = {"zoo": version(), "torch": str(torch.__version__), **provenance}
    try:
        metadata = {"provenance": json.dumps(about, allow_nan=False)}
    except (TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"provenance cannot be stored as JSON: {error}") from None
    metadata |= {
        "spec": json.dumps(model.spec),
        "lock": json.dumps(list(model.providers)),
        "places": json.dumps(list(model.component_paths)),
        "probe": json.dumps(
            record_probe(model) if probe else {"skipped": "saved with probe=False"}
        ),
    }
    if model.tokenizer:
        metadata["tokenizer"] = json.dumps(dict(model.tokenizer))
    return metadata


def _write_files(
    files: Sequence[Path], shards: Sequence[Mapping[str, Tensor]], metadata: Mapping[str, str]
) -> dict[str, object]:
    """Write and hash the tensors of each shard. Return the metadata of the index.

    Headers are written twice: hashes have the length of their placeholder.
    """
    tables = [layout_tensors(shard) for shard in shards]
    hashes: dict[str, str] = dict.fromkeys(
        (n for table in tables for n in table), _HASH_PLACEHOLDER
    )

    def header(number: int, model: str) -> bytes:
        table = tables[number]
        own = {"format": "pt", "zoo": FORMAT, **(metadata if number == 0 else {})}
        if len(files) > 1:
            own |= {"shard": f"{number + 1}/{len(files)}", "model": model}
        own |= {"hashes": json.dumps({name: hashes[name] for name in table})}
        layout = Layout(own, table)
        own["digest"] = layout.digest()
        return layout.encode()

    for number, file in enumerate(files):
        with open(file, "wb") as out:
            out.write(header(number, _HASH_PLACEHOLDER))
            for name in tables[number]:
                raw = tensor_bytes(shards[number][name])
                hashes[name] = hashlib.sha256(raw).hexdigest()
                out.write(raw)
    model = identity(metadata, hashes)
    for number, file in enumerate(files):
        with open(file, "rb+") as patched:
            patched.write(header(number, model))
    total = sum(stored.nbytes for table in tables for stored in table.values())
    return {"total_size": total, "model": model}


def _split_into_shards(tensors: Mapping[str, Tensor], max_bytes: int) -> list[dict[str, Tensor]]:
    """Split the tensors, in order, into shards of at most `max_bytes`; tensors are not split."""
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        own = tensor.numel() * tensor.element_size()
        if shards[-1] and size + own > max_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += own
    return shards


def _parse_bytes(size: int | str) -> int:
    """Return a size such as "2GB" as a number of bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?)B?", str(size).strip().upper())
    count = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if count < 1:
        raise ArtifactError(f"shard_bytes is {size!r}; expected a size such as 2000000000 or '2GB'")
    return count
