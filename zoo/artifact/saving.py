"""Saving of artifacts. Everything is checked before an existing file is replaced."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zoo.about import version
from zoo.adapters import find_adapters
from zoo.artifact.atomic_write import write_shards, write_single_file
from zoo.artifact.base import BasePin
from zoo.artifact.file_contents import FileContents
from zoo.artifact.header import MAX_VALUES
from zoo.artifact.layout import parse_json
from zoo.artifact.loadable import check_loadable, parse_headers
from zoo.artifact.mapped_file import INDEX, SINGLE_FILE
from zoo.artifact.probe import NotRunnable, record_probe
from zoo.artifact.weights import check_plain, check_tensors, load_weights, named_tensors
from zoo.errors import ArtifactError, SpecError, with_article
from zoo.files import os_error_message, resolve_target
from zoo.interfaces import Model
from zoo.interfaces.module_parts import unwrap_compiled
from zoo.interfaces.tensors import TensorMeta
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.spec import load_spec

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    provenance: Mapping[str, Any] | None = None,
    shard_bytes: int | str | None = None,
    probe: bool = True,
    base: BasePin | None = None,
) -> Path:
    """Save a model. An existing model is replaced atomically.

    A compiled model is saved as the model that was compiled. A model that was changed after it
    was composed, so that its spec does not describe it any more, is rejected: parts that were
    added, removed or replaced, and (unless `probe` is False) other changes of its outputs. In
    distributed training only rank 0 writes. A model that does not run on its example does not
    replace an existing one, unless `probe` is False. On Windows a file cannot be replaced while a
    model loaded from it is in use.

    Args:
        path: a file, or with `shard_bytes` a directory.
        provenance: information on how the model was made, such as data, seed and metrics, as JSON
            values.
        shard_bytes: the maximum size of one file, for example 2_000_000_000 or "2GB".
        probe: whether to store a small input with the model's outputs, for `zoo verify`.
        base: a saved model whose tensors are not saved again.
    """
    model = _unwrap_model(model)
    tensors = _own_tensors(model, base)
    max_bytes = None if shard_bytes is None else _parse_bytes(shard_bytes)
    if not is_main_process():
        return Path(path)
    shards = [tensors] if max_bytes is None else _split_into_shards(tensors, max_bytes)
    try:
        target = _resolve_target(path, is_sharded=max_bytes is not None)
        proof = _record_probe(model) if probe else {"skipped": "saved with probe=False"}
        contents = FileContents(shards, build_metadata(model, provenance or {}, proof, base))
        check_loadable(path, model, named_tensors(model), contents)
        if probe and (reason := proof.get("skipped")):
            _require_new(target, reason)
        if max_bytes is None:
            write_single_file(target, lambda temp_path: contents.write([temp_path]))
        else:
            write_shards(target, contents.shard_of, len(shards), contents.write)
    except (OSError, ValueError) as error:
        unchanged = "; the existing file is unchanged" if os.path.exists(path) else ""
        raise ArtifactError(
            f"{path} could not be written: {os_error_message(error)}{unchanged}"
        ) from error
    return target


def check_saving(
    model: Model,
    path: str | os.PathLike[str],
    *,
    provenance: Mapping[str, Any],
    base: BasePin | None = None,
) -> None:
    """Raise ArtifactError if `save` would, for another reason than the disk; nothing is written.

    The headers are encoded and parsed, and the model is built from them and run on the probe, as
    it is before a file is written.
    """
    model = _unwrap_model(model)
    contents = FileContents(
        [_own_tensors(model, base)], build_metadata(model, provenance, _record_probe(model), base)
    )
    check_loadable(path, model, named_tensors(model), contents)


def _own_tensors(model: Model, base: BasePin | None) -> dict[str, Tensor]:
    """Return the tensors that are written; raise ArtifactError if the model cannot be saved."""
    check_all_enabled(model)
    tensors = named_tensors(model)
    check_plain(tensors)
    return {name: t for name, t in tensors.items() if base is None or name not in base.tensors}


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
    base: BasePin | None = None,
    registry: ComponentRegistry | None = None,
) -> Path:
    """Write an artifact from a spec and named tensors, without copying the tensors.

    Args:
        providers: the providers of the components; default: the installed ones.
        tensors: the tensors of the spec's model, no more and no less.
        base: a saved model whose tensors are not written again.
    """
    model = build_saved(spec, providers, tensors, path, tokenizer=tokenizer, registry=registry)
    options: dict[str, Any] = {"shard_bytes": shard_bytes, "probe": probe, "base": base}
    return save(model, path, provenance=provenance, **options)


def build_saved(
    spec: Mapping[str, Any],
    providers: Sequence[Mapping[str, Any]] | None,
    tensors: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]],
    path: object,
    *,
    tokenizer: Mapping[str, str] | None = None,
    registry: ComponentRegistry | None = None,
) -> Model:
    """Build the model that `write` saves, on the CPU."""
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
    return model


def is_main_process() -> bool:
    """Return whether this process is rank 0, which writes files."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank() == 0
    world = os.environ.get("WORLD_SIZE", "")
    is_group = world.isdecimal() and int(world) > 1
    return not is_group or os.environ.get("RANK", "0") in ("", "0")


def _unwrap_model(model: nn.Module) -> Model:
    """Return the model itself if it is compiled; raise ArtifactError if it cannot be saved."""
    inner = unwrap_compiled(model) if isinstance(model, nn.Module) else model
    if not isinstance(inner, Model):
        raise ArtifactError(
            f"{with_article(type(inner).__name__)} cannot be saved; expected a zoo.Model, such as "
            "the attribute 'module' of a DistributedDataParallel"
        )
    if inner.spec is None:
        raise ArtifactError(
            "this model cannot be saved: it was not composed from a spec of registered components"
        )
    return inner


def check_all_enabled(model: Model) -> None:
    """Raise ArtifactError if an adapter is off, because a loaded model applies all of them."""
    off = [name for name, adapter in find_adapters(model).items() if not adapter.enabled]
    if off:
        raise ArtifactError(
            f"this model cannot be saved as it is: its adapter '{off[0]}' is off; apply it with "
            "zoo.use_adapters, or save one adapter with zoo.save_adapter"
        )


def _resolve_target(path: str | os.PathLike[str], *, is_sharded: bool) -> Path:
    """Return the file or directory to write, after following symbolic links."""
    if is_sharded:
        with contextlib.suppress(FileNotFoundError):
            if Path(path).suffix == ".safetensors" or not stat.S_ISDIR(os.stat(path).st_mode):
                raise ArtifactError(f"{path} is not a directory; shards are saved to a directory")
        return Path(os.path.realpath(path))
    if os.path.isdir(path):
        raise ArtifactError(
            f"{path} is a directory; use a file name such as {path}/model.safetensors"
        )
    return resolve_target(path)


def _record_probe(model: Model) -> dict[str, Any]:
    """Return the probe of a model, or the reason why it does not run."""
    try:
        return record_probe(model)
    except NotRunnable as error:
        return {"skipped": str(error)}


def _require_new(target: Path, reason: str) -> None:
    """Raise ArtifactError if a model that does not run would replace another one."""
    files = (target / SINGLE_FILE, target / INDEX) if target.is_dir() else (target,)
    if any(map(os.path.lexists, files)):
        raise ArtifactError(
            f"{target} was not replaced: {reason}; save the model to another path, or with "
            "probe=False"
        )


def build_metadata(
    model: Model,
    provenance: Mapping[str, Any],
    probe: Mapping[str, Any],
    base: BasePin | None = None,
) -> dict[str, str]:
    """Return the metadata of an artifact, as JSON texts."""
    values: dict[str, Any] = {
        "provenance": {"zoo": version(), "torch": str(torch.__version__), **provenance},
        "spec": model.spec,
        "lock": list(model.providers),
        "places": list(model.component_paths),
        "probe": probe,
    }
    if model.tokenizer:
        values["tokenizer"] = dict(model.tokenizer)
    if base is not None:
        values["base"] = base.as_json()
    return {key: _encode_json(key, value) for key, value in values.items()}


def _encode_json(key: str, value: Any) -> str:
    """Return a value as JSON that the reader accepts."""
    try:
        text = json.dumps(value, allow_nan=key != "provenance")
        parse_json(text, max_values=MAX_VALUES[key])
    except UnicodeEncodeError as error:
        raise ArtifactError(
            f"{key} cannot be stored: {error.object[error.start]!a} is half of a surrogate pair, "
            "which UTF-8 cannot encode"
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{key} cannot be stored as JSON: {error}") from None
    return text


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
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?) ?([KMGT]?)B?", str(size).strip().upper())
    count = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if count < 1:
        raise ArtifactError(f"shard_bytes is {size!r}; expected a size such as 2000000000 or '2GB'")
    return count


_SKIPPED = {"skipped": "written in a stream, without running the model"}


def write_stream(
    model: Model,
    metas: Mapping[str, TensorMeta],
    tensors: Iterable[tuple[str, Tensor]],
    path: str | os.PathLike[str],
    *,
    provenance: Mapping[str, Any],
) -> Path:
    """Write the artifact of a model without its weights in memory. An existing file is replaced.

    The model is not run, so the artifact has no probe.

    Args:
        model: the model, on the meta device.
        metas: shape and dtype of each tensor.
        tensors: the tensors, in any order.
    """
    empty = {name: meta.empty() for name, meta in metas.items()}
    check_tensors(path, empty, named_tensors(model))
    contents = FileContents([empty], build_metadata(model, provenance, _SKIPPED))
    try:
        target = resolve_target(path)
        parse_headers(target, contents)
        write_single_file(target, lambda temporary: contents.write_stream(temporary, tensors))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} could not be written: {os_error_message(error)}") from error
    return target
