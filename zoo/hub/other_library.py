"""Models of other libraries: the folders and repositories that contain one, and who imports it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zoo.artifact.header import NotAnArtifactError
from zoo.artifact.layout import MAX_TENSORS, exceeds_values
from zoo.artifact.mapped_file import SINGLE_FILE, ArtifactFile
from zoo.errors import ZooError, truncate
from zoo.files import check_regular, os_error_message
from zoo.hub.checkout import CONFIG, Checkout
from zoo.hub.weight_files import list_weight_files, remote_file
from zoo.registry.component_registry import default_registry

MAX_CONFIG = 10_000_000
MAX_VALUES = 4 * MAX_TENSORS
"""Maximum size of a JSON file in bytes and in values."""


def folder_importer(source: object) -> Any:
    """Return the module of a plugin that imports models of other libraries.

    Args:
        source: the folder or repository, for the error if there is none.
    """
    for plugin in default_registry().plugins:
        for module in plugin.folder_importers:
            return importlib.import_module(module)
    raise ZooError(
        f"{source} is a model of another library, and no installed plugin imports such models; "
        "'exchange' of attention-zoo does"
    )


def is_importable_folder(path: Path) -> bool:
    """Return whether a folder contains a model of another library."""
    if not _has_model_type(path):
        return False
    file = path / SINGLE_FILE
    return not (file.is_file() and _is_artifact(lambda: ArtifactFile(file)))


def is_importable(checkout: Checkout) -> bool:
    """Return whether a repository contains a model of another library."""
    if CONFIG not in checkout.tree or checkout.tree[CONFIG].size > MAX_CONFIG:
        return False
    if checkout.offline and not checkout.contains([CONFIG]):
        return False
    checkout.fetch([CONFIG])
    if not _has_model_type(checkout.folder):
        return False
    if is_imported(checkout):
        return True
    name = list_weight_files(checkout)[-1]
    if checkout.contains([name]):
        return not _is_artifact(lambda: ArtifactFile(checkout.folder / name))
    return checkout.offline or not _is_artifact(lambda: remote_file(checkout, name))


def is_imported(checkout: Checkout) -> bool:
    """Return whether a repository was imported at this commit, by any version of its importer."""
    return imported_folder(checkout).is_dir()


def _has_model_type(folder: Path) -> bool:
    """Return whether a folder has a config that names its architecture, as transformers does."""
    if not (folder / CONFIG).is_file():
        return False
    try:
        return isinstance(read_json(folder / CONFIG)["model_type"], str)
    except (ZooError, KeyError, TypeError):
        return False


def _is_artifact(read: Callable[[], object]) -> bool:
    try:
        read()
    except NotAnArtifactError:
        return False
    return True


def imported_folder(checkout: Checkout) -> Path:
    """Return the folder of the artifacts that were imported from a repository at its commit."""
    return checkout.cache.folder / ".zoo-imported" / checkout.commit


def read_json(file: Path) -> Any:
    """Return the content of a JSON file within limits."""
    try:
        found = file.stat()
        check_regular(file, found.st_mode)
        size = found.st_size
        if size > MAX_CONFIG:
            raise ZooError(f"{file} has {size:,} bytes; at most {MAX_CONFIG:,} are allowed")
        text = file.read_text(encoding="utf-8")
        if exceeds_values(text, MAX_VALUES):
            raise ZooError(f"{file} has more than {MAX_VALUES:,} values")
        return json.loads(text, parse_constant=_reject_constant)
    except OSError as error:
        raise ZooError(f"{file} cannot be read: {os_error_message(error)}") from None
    except (ValueError, RecursionError) as error:
        raise ZooError(f"{file} is not valid JSON: {truncate(str(error), 200)}") from None


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")
