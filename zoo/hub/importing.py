"""Import of models of other libraries, from files and from the Hub."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from zoo.errors import ZooError
from zoo.exchange.check_result import TOLERANCE
from zoo.exchange.import_plan import ImportPlan, plan_import
from zoo.hub.fetching import fetch
from zoo.hub.reference import is_repository, local_path

IMPORT_PATTERNS = (
    *("*.json", "*.txt", "*.model", "*.jinja"),
    *("[0-9]_*/config.json", "[0-9]_*/model.safetensors"),  # of sentence-transformers
)
"""The files of a repository that importers read, without its weights."""


def resolve_source(source: str | os.PathLike[str]) -> Path:
    """Return the path of a file or folder; data files of a Hub repository are downloaded."""
    path = local_path(source)
    if path is None and is_repository(os.fspath(source)):
        return fetch(os.fspath(source), (*IMPORT_PATTERNS, "model*.safetensors"))
    if path is None or not path.exists():
        raise ZooError(f"{source}: no such file or folder")
    return path


def plan_source(source: str | os.PathLike[str], **options: Any) -> ImportPlan:
    """Plan an import; `options` are those of `plan_import`.

    Args:
        source: a safetensors file, a folder, or a repository of the Hub.
    """
    path = resolve_source(source)
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
    return plan.write(output)
