"""Jobs on specs: their schema, reading, checking, and parts that fit a slot."""

from __future__ import annotations

import copy
import gc
import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

from zoo.errors import Problem, SpecError, ZooError, ZooWarning
from zoo.registry.component_registry import default_registry
from zoo.spec.document import format_path, read_file
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
    if not isinstance(document.data, dict):
        raise SpecError(
            [Problem("is not a spec: it should be a mapping", place=document.place(()))]
        )
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

    If none does, the first that only lacks keys is returned, with these keys in ``needs``, or else
    the problem of the first. Problems that the spec has without the value do not count; while they
    prevent a check of the widths, ``parameters`` is None.
    """
    data, known = _known_problems(session, data, path[0])
    answers = []
    for value in values:
        answers.append(_check_value(data, path, value, known))
        if answers[-1]["ok"] and not answers[-1]["needs"]:
            return answers[-1]
    return next((answer for answer in answers if answer["ok"]), answers[0])


def _known_problems(
    session: Session, data: dict[str, Any], section: str | int
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return a spec without the other sections that have problems, and the problems left in it.

    The result is kept for the next candidate of the slot.
    """
    slot = json.dumps([data, section])
    if session.get("candidates_of") != slot:
        session["candidates_of"] = slot
        checked, errors = data, check_data(data).get("errors")
        if errors:
            invalid = {re.split(r"[.[]", error["path"])[0] for error in errors} - {section}
            valid = {key: value for key, value in data.items() if key not in invalid}
            checked = {"zoo": 1, "name": "spec", **valid}
            errors = check_data(checked).get("errors")
        known = [(error["path"], error["message"]) for error in errors or ()]
        session["known_problems"] = checked, known
    found: tuple[dict[str, Any], list[tuple[str, str]]] = session["known_problems"]
    return found


def _check_value(
    data: Any, path: Sequence[str | int], value: Any, known: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """Check a value at a path; if the spec has known problems, only new ones in the slot count."""
    report = check_data(replace_value(data, path, value))
    if report["ok"]:
        sizes = {key: report[key] for key in ("parameters", "bytes")}
        return {"ok": True, "value": value, "needs": [], **sizes}
    slot = format_path(tuple(path))
    needs = []
    for problem in ((error["path"], error["message"]) for error in report["errors"]):
        place, message = problem
        inside = place == slot or place.startswith((f"{slot}.", f"{slot}["))
        missing = re.match(r"key '([^']+)' is missing", message)
        if inside and missing:
            needs.append(f"{place}.{missing[1]}".removeprefix(f"{slot}."))
        elif (inside or not known) and problem not in known:
            place = place.removeprefix(slot).removeprefix(".") if inside else place
            return {"ok": False, "reason": f"{place}: {message}" if place else message}
    return {"ok": True, "value": value, "needs": needs, "parameters": None, "bytes": None}


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
    """Return a copy of data with another value at a path.

    As in the form, a part that is only named becomes a mapping, and an index after the last entry
    of a list appends to it.
    """
    if not path:
        return value
    key = path[0]
    if isinstance(data, dict | list):
        copied: Any = copy.copy(data)
    else:
        copied = {"type": data} if isinstance(data, str) else [] if isinstance(key, int) else {}
    if isinstance(copied, dict):
        copied[key] = replace_value(copied.get(key), path[1:], value)
    elif isinstance(key, int) and 0 <= key <= len(copied):
        inner = copied[key] if key < len(copied) else None
        copied[key : key + 1] = [replace_value(inner, path[1:], value)]
    else:
        raise ZooError(f"a list with {len(copied)} entries has no entry {key!r} to set")
    return copied
