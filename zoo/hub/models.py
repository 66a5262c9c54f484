"""Models by any name: found, fetched, pinned and loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from zoo import artifact
from zoo.artifact.mapped_file import INDEX, SINGLE_FILE as WEIGHTS
from zoo.artifact.remote_header import RemoteFile, read_remote_header
from zoo.errors import ArtifactError, HubError, RegistryError
from zoo.hub import names
from zoo.hub.catalogue import Catalogue, Weights, load_catalogue
from zoo.hub.checkout import Checkout, Options
from zoo.hub.lock_file import LOCK_FILE, Pin, read_lock, write_pin
from zoo.hub.reference import Reference, is_repository, local_path, parse_reference
from zoo.interfaces import Model
from zoo.registry.component_registry import ComponentRegistry

CONFIG = "config.json"
_MAX_INDEX = 64_000_000
_LARGE_BYTES = 10_000_000
"""Bytes of weights that are worth a question before they are fetched."""

Source = str | os.PathLike[str]
"""A model file or folder, a catalogue's name, or a repository as org/name or hub:org/name@x."""


@dataclass(frozen=True)
class PullResult:
    """Where a pulled model is, and what it is."""

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
    """The model in a file or folder, in a catalogue, or on the Hub, with its weights bit for bit.

    What exists here under the name wins. A repository's branch is the commit that ``zoo.lock``
    in the current folder says, if it says one, else the newest.

    Args:
        dtype: what floating-point weights become; as they are stored if not set.
        verify: whether to hash the weights first. If not set, a file of the Hub is hashed once,
            and one of your own is not; False takes what the cache holds as it is.
    """
    skip_hash_check = verify is False
    options = Options(token, cache_dir, local_files_only, force_download, skip_hash_check)
    path = find(source, revision=revision, options=options)
    return artifact.load(path, device=device, dtype=dtype, verify=bool(verify), registry=registry)


def find(source: Source, *, revision: str | None = None, options: Options | None = None) -> Path:
    """The file or folder of a model, fetched if need be."""
    found = _resolve_source(source, revision, options or Options())
    if isinstance(found, Path):
        return found
    fetch_model(found)
    return model_path(found.folder)


def read_header(
    source: Source, *, revision: str | None = None, options: Options | None = None
) -> artifact.Header:
    """What a model says of itself; of one that is on the Hub alone, no weights are fetched."""
    found = _resolve_source(source, revision, options or Options())
    if isinstance(found, Path):
        return artifact.read_header(found)
    wanted = list_weight_files(found)
    if found.offline or found.contains(wanted):
        found.fetch(wanted)
        return artifact.read_header(model_path(found.folder))
    files = [_remote_file(found, name) for name in wanted if name != INDEX]
    return read_remote_header(files, found.folder / INDEX if INDEX in wanted else None)


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
    """Fetch a model into the cache and note its commit in ``zoo.lock``.

    With ``locked``, nothing but what the lock says is taken.
    """
    try:
        reference, pin = _resolve_reference(source, revision, load_catalogue(catalogues))
    except (HubError, RegistryError):
        if not os.path.exists(source):
            raise
        raise HubError(f"{source} is a path here; only what is on the Hub is pulled") from None
    if locked and pin is None and reference.is_mutable:
        pin = read_lock().get(str(reference))
        if pin is None:
            raise HubError(f"{LOCK_FILE} does not list {reference}, so --locked refuses it")
    options = Options(token, cache_dir, local_files_only, force_download)
    checkout = Checkout(reference, options, pin)
    try:
        wanted = fetch_model(checkout)
        path = model_path(checkout.folder)
        artifact.read_header(path)
    except ArtifactError as error:
        raise HubError(f"{reference} is no model of the zoo: {error}") from None
    if not locked:
        hashes = {n: checkout.tree[n].sha256 for n in wanted}
        kept = {name: sha256 for name, sha256 in hashes.items() if sha256}
        write_pin(reference, Pin(checkout.commit, kept))
    return PullResult(reference, checkout.commit, path, tuple(wanted))


def model_path(folder: Path) -> Path:
    """The model file of a folder, or the folder itself if its model is in several."""
    return folder / WEIGHTS if (folder / WEIGHTS).exists() else folder


def fetch_model(checkout: Checkout) -> list[str]:
    """Have the model in the snapshot; its weight files.

    Large ones are first asked whether they are a model of the zoo at all. config.json comes along
    where it can: the Hub counts downloads by it.
    """
    wanted = list_weight_files(checkout)
    large = [name for name in wanted if checkout.tree[name].size > _LARGE_BYTES]
    if large and not checkout.offline and not checkout.contains(wanted):
        _remote_file(checkout, large[0])
    along = [CONFIG] if CONFIG in checkout.tree and not checkout.offline else []
    checkout.fetch([*along, *wanted])
    return wanted


def _remote_file(checkout: Checkout, name: str) -> RemoteFile:
    """The header of a weight file that is on the Hub alone."""
    place = Path(f"{checkout.repo}@{checkout.commit[:12]}", name)
    return RemoteFile(place, checkout.tree[name].size, partial(checkout.read_prefix, name))


def list_weight_files(checkout: Checkout) -> list[str]:
    """The weight files of the model in a repository: one, or an index and the shards it names."""
    wanted = _find_weight_files(checkout)
    if checkout.pin:
        checkout.pin.check_all_pinned(wanted, checkout.tree)
    return wanted


def _find_weight_files(checkout: Checkout) -> list[str]:
    if WEIGHTS in checkout.tree:
        return [WEIGHTS]
    if INDEX not in checkout.tree:
        raise HubError(
            f"{checkout.repo} at {checkout.commit[:12]} has no {WEIGHTS}{checkout.describe_files()}"
        )
    where = f"{INDEX} of {checkout.repo}"
    if checkout.tree[INDEX].size > _MAX_INDEX:
        raise HubError(f"{where} has {checkout.tree[INDEX].size:,} bytes; that is no index")
    checkout.fetch([INDEX])
    try:
        shards = json.loads((checkout.folder / INDEX).read_bytes())["weight_map"].values()
        named = sorted({names.validate_shard_name(name, where) for name in shards})
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise HubError(f"{where} is no index of shards") from None
    absent = [name for name in named if name not in checkout.tree]
    if absent or not named:
        raise HubError(f"{where} names files that are not there: {', '.join(absent) or 'none'}")
    return [INDEX, *named]


def _resolve_source(source: Source, revision: str | None, options: Options) -> Path | Checkout:
    """The path a person means, or the repository at its commit."""
    path = local_path(source)
    if path is None:
        reference, pin = _resolve_reference(str(source), revision)
        pin = pin or (read_lock().get(str(reference)) if reference.is_mutable else None)
        return Checkout(reference, options, pin)
    if revision is not None:
        raise HubError(f"{source} is a path here; a revision is for repositories of the Hub")
    return path


def _resolve_reference(
    text: str, revision: str | None, known: Catalogue | None = None
) -> tuple[Reference, Pin | None]:
    """The repository a person means, and the pin if a catalogue has one."""
    if is_repository(text):
        return parse_reference(text, revision), None
    known = known or load_catalogue()
    weights = known.weights(text)
    if revision not in (None, weights.revision):
        raise HubError(
            f"the catalogue has '{text}' at revision {weights.revision}, not '{revision}'; "
            f"hub:{weights.hub}@{revision} names the repository itself"
        )
    return parse_reference(weights.hub, weights.revision), _pin_weights(weights)


def _pin_weights(weights: Weights) -> Pin:
    return Pin(weights.revision, {weights.file: weights.sha256} if weights.sha256 else {})
