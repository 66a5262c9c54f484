"""Models by reference: resolve, download, pin and load."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from zoo import artifact
from zoo.acceleration import accelerate
from zoo.artifact.layout import MAX_TENSORS, parse_json
from zoo.artifact.mapped_file import INDEX, SINGLE_FILE as WEIGHTS
from zoo.artifact.remote_header import RemoteFile, read_remote_header
from zoo.errors import ArtifactError, HubError, RegistryError, ZooWarning
from zoo.hub import names
from zoo.hub.catalogue import Catalogue, load_catalogue
from zoo.hub.catalogue_schema import Weights
from zoo.hub.checkout import Checkout, Options
from zoo.hub.lock_file import LOCK_FILE, Pin, hash_file, read_lock, write_pin
from zoo.hub.reference import Reference, is_repository, local_path, parse_reference
from zoo.hub.shipped import ShippedFile, find_shipped, is_shipped
from zoo.interfaces import Model
from zoo.registry.component_registry import ComponentRegistry

CONFIG = "config.json"
_MAX_INDEX = 64_000_000
_NAME = re.compile(r"[\w-]+")
_LARGE_BYTES = 10_000_000
"""Larger weight files are downloaded only after their header has been checked."""

Source = str | os.PathLike[str]
"""A model file or directory, a catalogue name, or `org/name` or `hub:org/name@revision`."""


@dataclass(frozen=True)
class PullResult:
    """A pulled model: its commit, path and weight files."""

    reference: Reference
    commit: str
    path: Path
    files: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "repository": self.reference.repo,
            "revision": self.reference.revision,
            "commit": self.commit,
            "path": str(self.path),
            "files": list(self.files),
        }


def load(
    source: Source,
    *,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    verify: bool | None = None,
    registry: ComponentRegistry | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
    force_download: bool = False,
) -> Model:
    """Load a model from a file or directory, a catalogue or the Hub, in evaluation mode.

    Call `model.train()` to train it. Only the components of the spec's `model` section have to be
    installed. An existing path takes precedence over the Hub, but not over the name of a shipped
    model; `./NAME` is always a path. A branch is loaded at the commit in
    `zoo.lock` of the current directory, if listed there, else at its newest commit.

    Args:
        dtype: dtype of the floating-point weights; default: as stored, and float32 for shipped
            weights, which are stored in bfloat16.
        verify: whether to check the hashes of the weights. Default: downloaded files are hashed
            once, local files are not. With False, cached files are not hashed. Shipped weights are
            always compared with the catalogue.
    """
    skip_hash_check = verify is False
    options = Options(token, cache_dir, local_files_only, force_download, skip_hash_check)
    found = resolve_source(source, revision, options)
    if dtype is None and isinstance(found, ShippedFile):
        dtype = torch.float32
    path = download_model(found)
    verify = bool(verify)
    model = artifact.load(
        path,
        device=device,
        dtype=dtype,
        verify=verify,
        registry=registry,
        find_base=lambda name, commit: find(name, revision=commit, options=options),
    )
    model.base = model.base or os.fspath(source) + (f"@{revision}" if revision else "")
    return accelerate(model, registry=registry)


def find(source: Source, *, revision: str | None = None, options: Options | None = None) -> Path:
    """Return the path of a model, downloaded if necessary."""
    return download_model(resolve_source(source, revision, options or Options()))


def read_header(
    source: Source, *, revision: str | None = None, options: Options | None = None
) -> artifact.Header:
    """Return the header of a model. For a model that is not cached, no weights are downloaded."""
    found = resolve_source(source, revision, options or Options())
    if not isinstance(found, Checkout):
        return artifact.read_header(download_model(found))
    file_names = list_weight_files(found)
    if found.offline or found.contains(file_names):
        found.fetch(file_names)
        return artifact.read_header(model_path(found.folder))
    files = [_remote_file(found, name) for name in file_names if name != INDEX]
    return read_remote_header(files, found.folder / INDEX if INDEX in file_names else None)


def pull(
    source: str,
    *,
    revision: str | None = None,
    locked: bool = False,
    catalogues: Sequence[Source] = (),
    token: str | bool | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
    force_download: bool = False,
) -> PullResult:
    """Download a model and record its commit in `zoo.lock`.

    Args:
        locked: use the commit in `zoo.lock`; raise if it does not list the reference.
    """
    try:
        reference, pin = _resolve_reference(source, revision, load_catalogue(catalogues))
    except (HubError, RegistryError):
        if not os.path.exists(source):
            raise
        raise HubError(f"{source} is a local path; only models on the Hub can be pulled") from None
    if locked and pin is None and reference.is_mutable:
        pin = read_lock().get(str(reference))
        if pin is None:
            raise HubError(f"{LOCK_FILE} does not list {reference}, which --locked requires")
    options = Options(token, cache_dir, local_files_only, force_download)
    checkout = Checkout(reference, options, pin)
    try:
        file_names = fetch_model(checkout)
        path = model_path(checkout.folder)
        artifact.read_header(path)
    except ArtifactError as error:
        raise HubError(f"{reference} is not a model of this library: {error}") from None
    if not locked:
        # The Hub lists no sha256 of files outside LFS.
        hashes = {
            name: checkout.tree[name].sha256 or hash_file(checkout.folder / name)
            for name in file_names
        }
        write_pin(reference, Pin(checkout.commit, hashes))
    return PullResult(reference, checkout.commit, path, tuple(file_names))


def model_path(folder: Path) -> Path:
    """Return the model file of a directory, or the directory of a sharded model."""
    return folder / WEIGHTS if (folder / WEIGHTS).exists() else folder


def fetch_model(checkout: Checkout) -> list[str]:
    """Download a model. Return the names of its weight files.

    The header of a large file is checked first. `config.json` is downloaded too, because the Hub
    counts downloads by it.
    """
    file_names = list_weight_files(checkout)
    large = [name for name in file_names if checkout.tree[name].size > _LARGE_BYTES]
    if large and not checkout.offline and not checkout.contains(file_names):
        _remote_file(checkout, large[0])
    config = [CONFIG] if CONFIG in checkout.tree and not checkout.offline else []
    checkout.fetch([*config, *file_names])
    return file_names


def _remote_file(checkout: Checkout, name: str) -> RemoteFile:
    """Return the header of a weight file on the Hub."""
    path = Path(f"{checkout.repo}@{checkout.commit[:12]}", name)
    return RemoteFile(path, checkout.tree[name].size, partial(checkout.read_prefix, name))


def list_weight_files(checkout: Checkout) -> list[str]:
    """Return the weight files of a repository: one file, or an index and its shards."""
    file_names = _find_weight_files(checkout)
    if checkout.pin:
        checkout.pin.check_all_pinned(file_names)
    return file_names


def _find_weight_files(checkout: Checkout) -> list[str]:
    if WEIGHTS in checkout.tree:
        return [WEIGHTS]
    if INDEX not in checkout.tree:
        raise HubError(
            f"{checkout.repo} at {checkout.commit[:12]} has no {WEIGHTS}{checkout.describe_files()}"
        )
    where = f"{INDEX} of {checkout.repo}"
    if checkout.tree[INDEX].size > _MAX_INDEX:
        raise HubError(
            f"{where} has {checkout.tree[INDEX].size:,} bytes; at most {_MAX_INDEX:,} are allowed"
        )
    checkout.fetch([INDEX])
    try:
        text = (checkout.folder / INDEX).read_text(encoding="utf-8")
        shards = parse_json(text, max_values=4 * MAX_TENSORS)["weight_map"].values()
        named = sorted({names.validate_shard_name(name, where) for name in shards})
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise HubError(f"{where} is not a valid index") from None
    if not named:
        raise HubError(f"{where} lists no shards")
    missing = [name for name in named if name not in checkout.tree]
    if missing:
        raise HubError(f"{where} lists files that do not exist: {', '.join(missing)}")
    return [INDEX, *named]


def named_path(source: Source) -> Path | None:
    """Return the local path that a source names; None for shipped models and repositories.

    A file or folder in the current directory does not replace a shipped model.
    """
    path = local_path(source)
    if isinstance(source, str) and _NAME.fullmatch(source) and path is not None:
        return None if is_shipped(source) else path
    return path


def resolve_source(
    source: Source, revision: str | None, options: Options
) -> Path | ShippedFile | Checkout:
    """Return the local path, the shipped file, or the repository at its commit."""
    path = named_path(source)
    if path is None and os.path.exists(source):
        warnings.warn(
            f"'{source}' is the shipped model of this name; write ./{source} for the path",
            ZooWarning,
            stacklevel=3,
        )
    if path is not None:
        if revision is not None:
            raise HubError(f"{source} is a local path; revision is only for models on the Hub")
        return path
    known = None
    if not is_repository(text := str(source)):
        known = load_catalogue()
        entry = known.get(text)
        if entry.shipped is not None and revision is None:
            return find_shipped(entry)
    reference, pin = _resolve_reference(text, revision, known)
    pin = pin or (read_lock().get(str(reference)) if reference.is_mutable else None)
    return Checkout(reference, options, pin)


def download_model(found: Path | ShippedFile | Checkout) -> Path:
    """Return the path of a model; download it if it is on the Hub."""
    if isinstance(found, Path):
        return found
    if isinstance(found, ShippedFile):
        return found.path
    fetch_model(found)
    return model_path(found.folder)


def _resolve_reference(
    text: str, revision: str | None, known: Catalogue | None = None
) -> tuple[Reference, Pin | None]:
    """Return the repository, and the pin of the catalogue if it has one."""
    if is_repository(text):
        return parse_reference(text, revision), None
    known = known or load_catalogue()
    weights = known.weights(text)
    if revision not in (None, weights.revision):
        raise HubError(
            f"the catalogue lists '{text}' at revision {weights.revision}, not '{revision}'; "
            f"use hub:{weights.hub}@{revision} for another revision"
        )
    return parse_reference(weights.hub, weights.revision), _pin_weights(weights)


def _pin_weights(weights: Weights) -> Pin:
    return Pin(weights.revision, {weights.file: weights.sha256} if weights.sha256 else {})
