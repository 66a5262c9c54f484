"""Import of models of other libraries, from files and from the Hub."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from zoo.artifact.mapped_file import INDEX
from zoo.errors import HubError, ZooError
from zoo.hub.checkout import CONFIG, Checkout, Options
from zoo.hub.reference import is_repository, local_path, parse_reference
from zoo.hub.weight_files import list_weight_files
from zoo_exchange.check_result import TOLERANCE
from zoo_exchange.import_plan import ImportPlan, check_import, plan_import

_log = logging.getLogger("zoo.exchange")

_FILES = ("*.json", "*.txt", "*.model", "*.jinja", "[0-9]_*/config.json")
"""The files of a repository that importers read, without its weights."""
_MODULE_WEIGHTS = ("[0-9]_*/model.safetensors",)
"""Weights of modules of sentence-transformers."""


def list_source_files(checkout: Checkout) -> list[str]:
    """Return the files of a repository that an import reads: weights, configs and tokenizers."""
    return [*list_weight_files(checkout), *checkout.match_files((*_FILES, *_MODULE_WEIGHTS))]


def fetch_source(checkout: Checkout, **options: Any) -> Path:
    """Download what an import of a repository reads; `options` are those of `check_import`.

    Raises:
        ZooError: if the files without weights show that it cannot be imported. Its weights are not
            requested then.
    """
    files = [name for name in checkout.match_files(_FILES) if name != INDEX]
    if CONFIG not in files and options.get("spec") is None:
        raise HubError(f"{checkout.repo} has no {CONFIG}{checkout.describe_files()}")
    checkout.fetch(files)
    check_import(checkout.folder, **options)
    checkout.fetch(list_source_files(checkout))
    return checkout.folder


def resolve_source(source: str | os.PathLike[str], **options: Any) -> Path:
    """Return the path of a file or folder; data files of a Hub repository are downloaded.

    `options` are those of `check_import`.
    """
    path = local_path(source)
    if path is None and is_repository(os.fspath(source)):
        return fetch_source(Checkout(parse_reference(os.fspath(source)), Options()), **options)
    if path is None or not path.exists():
        raise ZooError(f"{source}: no such file or folder")
    return path


def plan_source(source: str | os.PathLike[str], **options: Any) -> ImportPlan:
    """Plan an import; `options` are those of `plan_import`.

    Args:
        source: a safetensors file, a folder, or a repository of the Hub.
    """
    path = resolve_source(source, **options)
    is_local = local_path(source) is not None
    origin = None if is_local else {"imported": os.fspath(source), "commit": path.name}
    return plan_import(path, origin=origin, **options)


def import_model(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    check: str | os.PathLike[str] | None = None,
    tolerance: float = TOLERANCE,
    **options: Any,
) -> Path:
    """Import a model and write it to a file; `options` are those of `plan_import`.

    With `check`, an ``.npz`` file of inputs and outputs of the original, the model is compared
    first; ZooError is raised, and nothing is written, if they differ by more than `tolerance`.
    """
    plan = plan_source(source, **options)
    if check is not None:
        plan, result = plan.check(check, tolerance=tolerance)
        if result.failures:
            raise ZooError(result.message())
    for note in plan.notes:
        _log.warning("%s: %s", source, note)
    return plan.write(output)
