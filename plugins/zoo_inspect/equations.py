"""The equations of the components of an attention module, from their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from zoo.interfaces import Model
from zoo.interfaces.signature import parameters
from zoo_inspect.view import Equation

_DIRECTIVE = ".. math::"
_KINDS = ("scorer", "alignment", "position")
"""Components inside of an attention module that compute its weights, in the order shown."""


def equation_text(component: type) -> str:
    """Return the LaTeX of the first equation in the docstring of a class; "" if it has none.

    Paragraphs of the equation are separated by an empty line.
    """
    _, directive, after = (inspect.getdoc(component) or "").partition(_DIRECTIVE)
    if not directive:
        return ""
    # The equation ends at the first line that is not indented.
    lines = after.splitlines()
    end = next((i for i, line in enumerate(lines[1:], 1) if line and line[0] != " "), len(lines))
    return "\n".join(line.strip() for line in lines[:end]).strip()


def find_equations(model: Model, path: str) -> list[Equation]:
    """Return the equations of the components inside of a module, or else of the innermost component
    around it that has one."""
    classes = {entry.reference: entry.cls for entry in model.component_entries}
    inside, around = [], []
    for row in model.component_paths:
        if row["type"] not in classes or not row["path"].startswith("model"):
            continue
        cls, places = classes[row["type"]], row["at"]
        found = Equation(
            row["kind"],
            cls.name,
            equation_text(cls),
            cls.paper,
            _plain_parameters(model.spec or {}, row["path"], cls),
        )
        if row["kind"] in _KINDS and any(_contains(path, place) for place in places):
            inside.append(found)
        elif found.text and any(_contains(place, path) for place in places):
            around.append((max(len(p) for p in places if _contains(p, path)), found))
    inside.sort(key=lambda equation: _KINDS.index(equation.kind))
    return inside or [found for _, found in sorted(around, key=lambda pair: pair[0])[-1:]]


def _contains(outer: str, inner: str) -> bool:
    """Return whether a module is another one or inside of it."""
    return outer in ("", inner) or inner.startswith(outer + ".")


def _plain_parameters(spec: Mapping[str, Any], path: str, component: type) -> dict[str, Any]:
    """Return the parameters of a part of the spec that are not parts themselves, nor defaults."""
    part: Any = spec
    for step in re.findall(r"[^.\[\]]+", path):
        part = part[int(step)] if isinstance(part, Sequence) else part[step]
    if not isinstance(part, Mapping):
        return {}
    plain = (bool, int, float, str, type(None))
    defaults = {each.name: each.default for each in parameters(component)}
    defaults["type"] = part.get("type")
    return {
        key: value
        for key, value in part.items()
        if isinstance(value, plain) and (key not in defaults or value != defaults[key])
    }
