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
from zoo.artifact.base import BaseSource
from zoo.artifact.header import NotAnArtifactError
from zoo.artifact.mapped_file import INDEX
from zoo.artifact.remote_header import read_remote_header
from zoo.errors import ArtifactError, HubError, RegistryError, ZooWarning
from zoo.files import hash_file
from zoo.hub.catalogue import Catalogue, Weights, load_catalogue
from zoo.hub.checkout import Checkout, Options
from zoo.hub.lock_file import LOCK_FILE, Pin, read_lock, write_pin
from zoo.hub.other_library import (
    folder_importer,
    is_importable,
    is_importable_folder,
    is_imported,
)
from zoo.hub.reference import Reference, is_repository, local_path, parse_reference
from zoo.hub.shipped import ShippedFile, find_shipped, is_shipped
from zoo.hub.weight_files import fetch_model, list_weight_files, model_path, remote_file
from zoo.interfaces import Model
from zoo.registry.component_registry import ComponentRegistry

_NAME = re.compile(r"[\w-]+")

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
    base: Source | None = None,
    registry: ComponentRegistry | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
    force_download: bool = False,
) -> Model:
    """Load a model from a file or directory, a catalogue or the Hub, in evaluation mode.

    A repository or a directory of another library whose ``config.json`` an importer supports is
    imported at first use and cached.

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
        base: the base of an adapter, if it is not at the place that its file names; its weights
            must have the hash in the file.
    """
    skip_hash_check = verify is False
    options = Options(token, cache_dir, local_files_only, force_download, skip_hash_check)
    found = _resolve_source(source, revision, options)
    if dtype is None and isinstance(found, ShippedFile):
        dtype = torch.float32
    path = _download(found, registry, skip_hash_check=skip_hash_check)
    verify = bool(verify)
    model = artifact.load(
        path,
        device=device,
        dtype=dtype,
        verify=verify,
        registry=registry,
        base=base_source(base, options),
    )
    model.base = model.base or os.fspath(source) + (f"@{revision}" if revision else "")
    return accelerate(model, registry=registry)


def base_reference(source: Source) -> tuple[Path, str | None, str | None]:
    """Return the path of a base, and the name and the commit with which another machine finds it.

    The name of a local path is None.
    """
    found = _resolve_source(source, None, Options())
    path = _download(found, None)
    if isinstance(found, Path):
        return path, None, None
    if isinstance(found, ShippedFile):
        return path, str(source), None
    return path, found.repo, found.commit


def base_source(base: Source | None, options: Options | None = None) -> BaseSource:
    """Return the path of a base that is given, or else how the base of a model is found."""
    return partial(find_base, options=options) if base is None else find(base, options=options)


def find_base(name: str, revision: str | None, *, options: Options | None = None) -> Path:
    """Return the path of the base of a model; a path is relative to the current directory."""
    return find(name, revision=revision, options=options)


def find(
    source: Source,
    *,
    revision: str | None = None,
    options: Options | None = None,
    registry: ComponentRegistry | None = None,
) -> Path:
    """Return the path of a model file; the model is downloaded and imported if necessary."""
    options = options or Options()
    found = _resolve_source(source, revision, options)
    return _download(found, registry, skip_hash_check=options.skip_hash_check)


def read_header(
    source: Source, *, revision: str | None = None, options: Options | None = None
) -> artifact.Header:
    """Return the header of a model. For a model that is not cached, no weights are downloaded.

    A model of another library is downloaded and imported.
    """
    found = _resolve_source(source, revision, options or Options())
    if isinstance(found, Checkout) and not is_imported(found):
        try:
            return _read_checkout_header(found)
        except NotAnArtifactError:
            if not is_importable(found):
                raise
    return artifact.read_header(_download(found))


def _read_checkout_header(checkout: Checkout) -> artifact.Header:
    file_names = list_weight_files(checkout)
    if checkout.offline or checkout.contains(file_names):
        checkout.fetch(file_names)
        return artifact.read_header(model_path(checkout.folder))
    files = [remote_file(checkout, name) for name in file_names if name != INDEX]
    return read_remote_header(files, checkout.folder / INDEX if INDEX in file_names else None)


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
        if is_importable(checkout):
            importer = folder_importer(reference)
            file_names = importer.list_source_files(checkout)
            path: Path = importer.import_repository(checkout)
        else:
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


def named_path(source: Source) -> Path | None:
    """Return the local path that a source names; None for shipped models and repositories.

    A file or folder in the current directory does not replace a shipped model.
    """
    path = local_path(source)
    if isinstance(source, str) and _NAME.fullmatch(source) and path is not None:
        return None if is_shipped(source) else path
    return path


def _resolve_source(
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


def _download(
    found: Path | ShippedFile | Checkout,
    registry: ComponentRegistry | None = None,
    *,
    skip_hash_check: bool = False,
) -> Path:
    """Return the path of a model file; download a repository, import a model of another library."""
    if isinstance(found, Path):
        if is_importable_folder(found):
            importer = folder_importer(found)
            return Path(importer.import_folder(found, registry, skip_hash_check=skip_hash_check))
        return found
    if isinstance(found, ShippedFile):
        return found.path
    if is_importable(found):
        return Path(folder_importer(found.repo).import_repository(found, registry))
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
