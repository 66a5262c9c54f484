"""The weight files of a repository: which they are, their headers, and their download."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from zoo.artifact.layout import MAX_TENSORS, parse_json
from zoo.artifact.mapped_file import INDEX, SINGLE_FILE as WEIGHTS
from zoo.artifact.remote_header import RemoteFile
from zoo.errors import HubError
from zoo.hub import names
from zoo.hub.checkout import CONFIG, Checkout

_MAX_INDEX = 64_000_000
_LARGE_BYTES = 10_000_000
"""Larger weight files are downloaded only after their header has been checked."""


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
        remote_file(checkout, large[0])
    config = [CONFIG] if CONFIG in checkout.tree and not checkout.offline else []
    checkout.fetch([*config, *file_names])
    return file_names


def remote_file(checkout: Checkout, name: str) -> RemoteFile:
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
