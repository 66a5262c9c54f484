"""Plain data to blueprints, every fault found and placed, none raised before the end."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any

from zoo.errors import Place, Problem, RegistryError, article
from zoo.interfaces import KINDS, Entry
from zoo.interfaces.signature import Parameter, Slot, parameters
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import Registry
from zoo.spec.document import Document, Trail, dotted


class Reader:
    """Reads one document against the signatures of the parts it names."""

    def __init__(self, document: Document, registry: Registry) -> None:
        self.document = document
        self.registry = registry
        self.problems: list[Problem] = list(document.problems)

    def part(self, target: type, value: Any, trail: Trail = ()) -> Blueprint[Any] | None:
        """The blueprint for a slot of this target, or None if it can't be made."""
        if isinstance(value, Blueprint):
            return self._ready(target, value, trail)
        entry: Entry | None = None
        if target in KINDS.values():
            entry = self._entry(target, value, trail)
            if entry is None:
                return None
            target = entry.cls
            value = (
                {k: v for k, v in value.items() if k != "type"} if isinstance(value, dict) else {}
            )
        elif not isinstance(value, dict):
            self._fault(f"should be a mapping, but is {_short(value)}", trail)
            return None
        return self._filled(target, entry, value, trail)

    def _ready(self, target: type, value: Blueprint[Any], trail: Trail) -> Blueprint[Any] | None:
        """A blueprint that Python code made, found among the registered ones."""
        if not issubclass(value.cls, target):
            self._fault(f"is a blueprint of {value.cls.__name__}, no {target.__name__}", trail)
            return None
        offered = [e for e in self.registry.entries if e.cls is value.cls]
        return replace(value, path=dotted(trail), entry=offered[0] if offered else None)

    def _entry(self, kind: Any, value: Any, trail: Trail) -> Entry | None:
        name = value.get("type") if isinstance(value, dict) else value
        at = (*trail, "type") if isinstance(value, dict) and "type" in value else trail
        if name is None and isinstance(value, dict):
            names = ", ".join(sorted({e.name for e in self.registry.components(kind.kind)}))
            self._fault(f"needs 'type', the name of its {kind.kind} (available: {names})", trail)
        elif not isinstance(name, str):
            self._fault(f"should name {article(kind.kind)}, but is {_short(name)}", at)
        else:
            try:
                return self.registry.get(kind.kind, name)
            except RegistryError as error:
                self._fault(str(error), trail, self.document.place(at))
        return None

    def _filled(
        self, cls: type, entry: Entry | None, value: dict[str, Any], trail: Trail
    ) -> Blueprint[Any] | None:
        known = {p.name: p for p in parameters(cls)}
        explained = self._unknown_keys(known, value, trail)
        whole = True
        params: dict[str, Any] = {}
        for parameter in known.values():
            if parameter.given:
                continue
            if parameter.name in value:
                at = (*trail, parameter.name)
                good, read = self._parameter(parameter, value[parameter.name], at)
                whole &= good
                params[parameter.name] = read
            elif parameter.required:
                whole = False
                if parameter.name not in explained:
                    self._fault(f"key '{parameter.name}' is missing", trail)
        if not whole:
            return None
        places = {key: self.document.place((*trail, key)) for key in params}
        return Blueprint(
            cls,
            params,
            path=dotted(trail),
            place=self.document.place(trail),
            places={key: place for key, place in places.items() if place},
            entry=entry,
        )

    def _unknown_keys(
        self, known: dict[str, Parameter], value: dict[str, Any], trail: Trail
    ) -> set[str]:
        """Reports them; returns the missing keys that a misspelt one was meant for."""
        open_keys = [name for name, parameter in known.items() if not parameter.given]
        explained = set()
        for key in value:
            if key in open_keys:
                continue
            place = self.document.key((*trail, key))
            if key in known:
                message = f"key '{key}' is set by the part's parent, not by a spec; leave it out"
            else:
                close = difflib.get_close_matches(str(key)[:100], open_keys, n=1)
                explained.update(close)
                hint = f"; did you mean '{close[0]}'?" if close else ""
                listed = ", ".join(open_keys) or "none"
                message = f"unknown key '{key}'{hint} (available: {listed})"
            self._fault(message, (*trail, key), place)
        return explained

    def _parameter(self, parameter: Parameter, value: Any, trail: Trail) -> tuple[bool, Any]:
        if parameter.slot:
            return self._slot(parameter.slot, value, trail)
        value, faults = parameter.read(value)
        for inside, why in faults:
            at, found = _inside(value, inside)
            why = why.replace("Input should", "should", 1)
            self._fault(f"is {_short(found)}, but {why}", (*trail, *at))
        return not faults, value

    def _slot(self, slot: Slot, value: Any, trail: Trail) -> tuple[bool, Any]:
        if slot.optional and value is None:
            return True, None
        if not slot.many:
            part = self.part(slot.target, value, trail)
            return part is not None, part
        if not isinstance(value, (list, tuple)):
            self._fault(f"should be a list, but is {_short(value)}", trail)
            return False, None
        parts = [self.part(slot.target, item, (*trail, i)) for i, item in enumerate(value)]
        return None not in parts, parts

    def _fault(self, message: str, trail: Trail, place: Place | None = None) -> None:
        place = place or self.document.place(trail)
        self.problems.append(Problem(message, dotted(trail), place))


def _inside(value: Any, trail: Trail) -> tuple[Trail, Any]:
    """How far a fault's path leads into the value; pydantic adds steps of its own for unions."""
    walked: Trail = ()
    for step in trail:
        try:
            value = value[step]
        except (TypeError, KeyError, IndexError):
            continue
        walked = (*walked, step)
    return walked, value


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty"
    try:
        text = repr(value)
    except Exception:  # a number of too many digits, or a stranger's object
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 40 else text[:37] + "..."
