"""What the argument of ``zoo ui`` names: a spec or a model, as the address of a page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from zoo.cli.index import Index
from zoo.errors import ZooError, suggest


def page_address(target: str, index: Index) -> str:
    """Return the part of the address after ``#`` that opens a spec or a model.

    A name of both is that of the model if its weights are shipped or published, otherwise that of
    the spec.

    Raises:
        ZooError: if it is neither.
    """
    path = Path(target)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return _address("build", "file", os.path.abspath(target))
    if path.exists() and target not in _names_with_weights(index):
        return _address("models", "model", os.path.abspath(target))
    if target in _names_with_weights(index) or target.startswith("hub:"):
        return _address("models", "model", target)
    if target in index.specs:
        return _address("build", "spec", target)
    if "/" in target and path.suffix not in (".yaml", ".yml", ".safetensors"):
        return _address("models", "model", target)
    known = [*index.specs, *_names_with_weights(index)]
    tail = suggest(target, known, list_command="zoo list --specs' and 'zoo catalogue")
    raise ZooError(f"no file, spec or model named '{target}'{tail}")


def _address(page: str, key: str, value: str) -> str:
    return f"/{page}?{key}={quote(value, safe='')}"


def _names_with_weights(index: Index) -> list[str]:
    return [str(model.data["name"]) for model in index.models if has_weights(model.data)]


def has_weights(model: Mapping[str, Any]) -> bool:
    """Return whether a model of the catalogue has weights."""
    return bool(model.get("weights") or model.get("shipped"))
