"""Values of two specs that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from zoo.errors import Place
from zoo.spec.document import Document, KeyPath, format_path
from zoo_diff.side import Side

ABSENT = object()
"""The value of a key that a spec does not have."""


@dataclass(frozen=True)
class SettingDifference:
    """A value that differs, with the place in the file of each spec that sets it."""

    path: str
    a: Any
    b: Any
    a_place: Place | None
    b_place: Place | None

    def as_json(self) -> dict[str, Any]:
        sides: dict[str, Any] = {"path": self.path}
        for name in ("a", "b"):
            value, place = getattr(self, name), getattr(self, f"{name}_place")
            if value is not ABSENT:
                sides[name] = value
            sides[f"{name}_place"] = None if place is None else asdict(place)
        return sides


def compare_settings(a: Side, b: Side) -> list[SettingDifference]:
    """Return the values of the resolved specs that differ, in the order of the specs.

    The section ``train`` is compared if both have one: a model that was not trained has none.
    """
    one, two = dict(a.settings), dict(b.settings)
    if not (one.get("train") and two.get("train")):
        one.pop("train", None)
        two.pop("train", None)
    return [
        SettingDifference(
            format_path(path), left, right, _place(a.document, path), _place(b.document, path)
        )
        for path, left, right in _differences(one, two, ())
    ]


def _differences(a: Any, b: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any, Any]]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in dict.fromkeys([*a, *b]):
            yield from _differences(a.get(key, ABSENT), b.get(key, ABSENT), (*path, key))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from _differences(left, right, (*path, index))
    elif a != b or (type(a) is not type(b) and bool in (type(a), type(b))):
        yield path, a, b


def _place(document: Document | None, path: KeyPath) -> Place | None:
    """Return where a value is set; None if it is a default.

    ``scorer: dot`` sets ``scorer.type``.
    """
    if document is None:
        return None
    if path in document.values:
        return document.values[path]
    outer: Any = document.data
    for depth, step in enumerate(path):
        is_container = isinstance(outer, dict | list)
        if not is_container:
            return document.values.get(path[:depth]) if step == "type" else None
        try:
            outer = outer[step]
        except (KeyError, IndexError, TypeError):
            return None
    return None
