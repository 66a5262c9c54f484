"""Jobs on specs: their schema, reading, checking, and parts that fit a slot."""

from __future__ import annotations

import copy
import gc
import warnings
from collections.abc import Sequence
from typing import Any

from zoo.errors import SpecError, ZooError, ZooWarning
from zoo.registry.component_registry import default_registry
from zoo.spec.document import read_file
from zoo.spec.extending import load_document
from zoo.spec.meta import skip_dynamo_import
from zoo.spec.schema import spec_schema
from zoo.training.composing import check_started

Session = dict[str, Any]
"""What a worker process keeps between its jobs."""


def load(session: Session) -> None:
    """Load torch and the components, so that the next job does not wait for them."""
    default_registry()


def schema(session: Session) -> dict[str, Any]:
    """Return the JSON Schema of specs."""
    return spec_schema(default_registry())


def open_spec(session: Session, *, source: str) -> dict[str, Any]:
    """Return a spec by name or file as plain data, merged over the specs that it extends."""
    document = load_document(source, default_registry())
    return {"data": document.data}


def open_recipe(session: Session, *, name: str) -> dict[str, Any]:
    """Return the spec of a recipe as `open_spec` does, under the name of the recipe."""
    registry = default_registry()
    recipe = read_file(registry.recipe(name), "a recipe").data
    if not isinstance(recipe.get("spec"), dict):
        raise ZooError(f"recipe '{name}' has no spec")
    return {"data": load_document({"zoo": 1, **recipe["spec"], "name": name}, registry).data}


def check(session: Session, *, data: Any) -> dict[str, Any]:
    """Return what ``zoo check --json`` prints for a spec, and the warnings."""
    report = check_data(data)
    if not session.get("frozen"):  # imports of the first check are never freed
        session["frozen"] = True
        gc.freeze()
    return report


def check_candidate(
    session: Session, *, data: Any, path: Sequence[str | int], values: Sequence[Any]
) -> dict[str, Any]:
    """Return the first of several values at a path with which a spec passes, with its sizes.

    If none does, the problem of the first is returned.
    """
    first: dict[str, Any] | None = None
    for value in values:
        report = check_data(replace_value(data, path, value))
        if report["ok"]:
            return {"ok": True, "value": value} | {k: report[k] for k in ("parameters", "bytes")}
        first = first or {"ok": False, "reason": report["errors"][0]["message"]}
    assert first is not None
    return first


def check_data(data: Any) -> dict[str, Any]:
    """Return the report of a spec, or its problems."""
    with warnings.catch_warnings(record=True) as caught, skip_dynamo_import():
        warnings.simplefilter("always", ZooWarning)
        try:
            _, report, plan = check_started(data)
        except SpecError as error:
            return {"ok": False, "errors": [problem.as_json() for problem in error.problems]}
    messages = [str(each.message) for each in caught if issubclass(each.category, ZooWarning)]
    start = plan.record() if plan else None
    return report.as_json() | {"start": start, "warnings": list(dict.fromkeys(messages))}


def replace_value(data: Any, path: Sequence[str | int], value: Any) -> Any:
    """Return a copy of data with another value at a path."""
    if not path:
        return value
    copied = copy.copy(data)
    key = path[0]
    inner = copied.get(key) if isinstance(copied, dict) else copied[key]
    copied[key] = replace_value(inner, path[1:], value)
    return copied
