"""Check that an object is a usable component class."""

from __future__ import annotations

import inspect
import re
from typing import Any

from zoo.interfaces import KINDS, Component, Part
from zoo.interfaces.signature import parameters

NAME = re.compile(r"[a-z0-9]+(?:[-._][a-z0-9]+)*")
"""The names that components and importers may have."""


def validate_component(item: object) -> str | None:
    """Return why an object is not a component class, or None if it is one."""
    if not isinstance(item, type) or not issubclass(item, Component):
        return f"{short_repr(item)} is not a component class"
    label = item.__name__
    kind = getattr(item, "kind", None)
    if not isinstance(kind, str) or kind not in KINDS or not issubclass(item, KINDS[kind]):
        return f"{label} does not subclass an interface of zoo.plugin ({', '.join(KINDS)})"
    if issubclass(item, Part) and not item.base_classes():
        return f"{label} is a part, but does not subclass the class of a slot, such as Attention"
    if inspect.isabstract(item):
        missing = ", ".join(sorted(getattr(item, "__abstractmethods__", ())))
        return f"{label} does not implement methods of its kind '{item.kind}': {missing}"
    name = getattr(item, "name", None)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return f"{label}.name is {short_repr(name)}; expected lower-case words joined by hyphens"
    if type(item.version) is not int or item.version < 1:
        return f"{label}.version is {short_repr(item.version)}; expected an integer of at least 1"
    try:
        _validate_signatures(item)
    except TypeError as error:
        return str(error)
    return None


def _validate_signatures(cls: type[Any], parents: tuple[type[Any], ...] = ()) -> None:
    """Raise TypeError if a constructor is not a schema, here or in a plain class of a slot."""
    parents = (*parents, cls)
    for parameter in parameters(cls):
        target = parameter.slot.target if parameter.slot else cls
        if target not in parents and target not in KINDS.values():
            _validate_signatures(target, parents)


def short_repr(value: object) -> str:
    """Return the ``repr`` of a value, cut to 60 characters; a placeholder if ``repr`` raises."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"an object whose repr raises {type(error).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
