"""Validation of plain data against component signatures; collects all problems."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any

from zoo.errors import Place, Problem, RegistryError, with_article
from zoo.interfaces import KINDS, Entry
from zoo.interfaces.signature import Parameter, Slot, parameters
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry
from zoo.registry.plugin_data import Plugin
from zoo.spec.document import Document, KeyPath, format_path


class SpecReader:
    """Reads a document into blueprints, and collects problems in `problems`.

    Args:
        owner: the plugin that provides the document. Its components are preferred if several
            plugins provide a name, as are those of the plugin whose file contains the name.
    """

    def __init__(
        self, document: Document, registry: ComponentRegistry, *, owner: Plugin | None = None
    ) -> None:
        self.document = document
        self.registry = registry
        self.owner = owner
        self._owners: dict[str, Plugin | None] = {}
        self.problems: list[Problem] = list(document.problems)

    def part(self, target: type, value: Any, key_path: KeyPath = ()) -> Blueprint[Any] | None:
        """Return the blueprint for a slot that takes `target`, or None if there are problems."""
        if isinstance(value, Blueprint):
            return self._check_blueprint(target, value, key_path)
        entry: Entry | None = None
        if isinstance(value, str) and hasattr(target, "shorthand"):
            value = {target.shorthand: value}
        if target in KINDS.values() or (key_path and _has_type(value)):
            entry = self._find_entry(target, value, key_path)
            if entry is None:
                return None
            target = entry.cls
            value = (
                {k: v for k, v in value.items() if k != "type"} if isinstance(value, dict) else {}
            )
        elif not isinstance(value, dict):
            self._add_problem(f"should be a mapping, but is {_describe_value(value)}", key_path)
            return None
        return self._read_params(target, entry, value, key_path)

    def _check_blueprint(
        self, target: type, value: Blueprint[Any], key_path: KeyPath
    ) -> Blueprint[Any] | None:
        """Return a blueprint written in Python, with its registry entry if it is registered."""
        if not issubclass(value.cls, target):
            self._add_problem(
                f"is a blueprint of {value.cls.__name__}, but should be of {target.__name__}",
                key_path,
            )
            return None
        entry = next((e for e in self.registry.entries if e.cls is value.cls), None)
        return replace(value, path=format_path(key_path), entry=entry)

    def _find_entry(self, target: Any, value: Any, key_path: KeyPath) -> Entry | None:
        """Return the component that a value names, for a slot of a kind or of a class."""
        is_kind = target in KINDS.values()
        what = target.kind if is_kind else target.__name__
        name = value.get("type") if isinstance(value, dict) else value
        at = (*key_path, "type") if isinstance(value, dict) and "type" in value else key_path
        if name is None and isinstance(value, dict):
            names = ", ".join(sorted({e.name for e in self.registry.components(what)}))
            self._add_problem(
                f"key 'type', the name of the {what}, is missing (available: {names})",
                key_path,
            )
        elif not isinstance(name, str):
            self._add_problem(
                f"should be the name of {with_article(what)}, but is {_describe_value(name)}",
                at,
            )
        else:
            try:
                registry, owner = self.registry, self._owner(at)
                if is_kind:
                    return registry.get(what, name, owner=owner)
                return registry.get_part(target, name, owner=owner)
            except RegistryError as error:
                self._add_problem(str(error), key_path, self.document.place(at))
        return None

    def _owner(self, key_path: KeyPath) -> Plugin | None:
        """Return the plugin that provides the file with a value, or the owner of the document."""
        place = self.document.values.get(key_path)
        if place is None:
            return self.owner
        if place.file not in self._owners:
            self._owners[place.file] = self.registry.owner_of(place.file)
        return self._owners[place.file]

    def _read_params(
        self, cls: type, entry: Entry | None, value: dict[str, Any], key_path: KeyPath
    ) -> Blueprint[Any] | None:
        known = {p.name: p for p in parameters(cls)}
        misspelt = self._report_unknown_keys(known, value, key_path)
        complete = True
        params: dict[str, Any] = {}
        for parameter in known.values():
            if parameter.from_parent:
                continue
            if parameter.name in value:
                at = (*key_path, parameter.name)
                valid, read = self._read_parameter(parameter, value[parameter.name], at)
                complete &= valid
                params[parameter.name] = read
            elif parameter.required:
                complete = False
                if parameter.name not in misspelt:
                    self._add_problem(f"key '{parameter.name}' is missing", key_path)
        if not complete:
            return None
        places = {key: self.document.place((*key_path, key)) for key in params}
        for key, read in params.items():
            for i in range(len(read) if isinstance(read, (list, tuple)) else 0):
                places[f"{key}[{i}]"] = self.document.place((*key_path, key, i))
        return Blueprint(
            cls,
            params,
            path=format_path(key_path),
            place=self.document.place(key_path),
            places={key: place for key, place in places.items() if place},
            entry=entry,
        )

    def _report_unknown_keys(
        self, known: dict[str, Parameter], value: dict[str, Any], key_path: KeyPath
    ) -> set[str]:
        """Add a problem for each unknown key; return the known keys closest to them."""
        allowed = [name for name, parameter in known.items() if not parameter.from_parent]
        misspelt = set()
        for key in value:
            if key in allowed:
                continue
            place = self.document.key((*key_path, key))
            if key in known:
                parent = format_path(_parent(key_path))
                by = f"the parent, '{parent}'" if parent else "the parent of the part"
                message = f"key '{key}' is set by {by}; remove it"
            else:
                close = difflib.get_close_matches(str(key)[:100], allowed, n=1)
                misspelt.update(close)
                hint = f"; did you mean '{close[0]}'?" if close else ""
                listed = ", ".join(allowed) or "none"
                message = f"unknown key '{key}'{hint} (available: {listed})"
            self._add_problem(message, (*key_path, key), place)
        return misspelt

    def _read_parameter(
        self, parameter: Parameter, value: Any, key_path: KeyPath
    ) -> tuple[bool, Any]:
        if parameter.slot:
            return self._read_slot(parameter.slot, value, key_path)
        value, errors = parameter.parse(value)
        for inside, reason in errors:
            at, found = _locate(value, inside)
            reason = reason.replace("Input should", "should", 1)
            self._add_problem(f"is {_describe_value(found)}, but {reason}", (*key_path, *at))
        return not errors, value

    def _read_slot(self, slot: Slot, value: Any, key_path: KeyPath) -> tuple[bool, Any]:
        if slot.optional and value is None:
            return True, None
        if slot.named:
            return self._read_named_slot(slot, value, key_path)
        if not slot.many:
            part = self.part(slot.target, value, key_path)
            return part is not None, part
        if not isinstance(value, (list, tuple)):
            self._add_problem(f"should be a list, but is {_describe_value(value)}", key_path)
            return False, None
        parts = [self.part(slot.target, item, (*key_path, i)) for i, item in enumerate(value)]
        return None not in parts, parts

    def _read_named_slot(self, slot: Slot, value: Any, key_path: KeyPath) -> tuple[bool, Any]:
        if not isinstance(value, dict):
            self._add_problem(f"should be a mapping, but is {_describe_value(value)}", key_path)
            return False, None
        valid, parts = True, {}
        for name, item in value.items():
            if isinstance(name, str):
                parts[name] = self.part(slot.target, item, (*key_path, name))
            else:
                self._add_problem(f"key {_describe_value(name)} should be a string", key_path)
            valid &= isinstance(name, str) and parts[name] is not None
        return valid, parts

    def _add_problem(self, message: str, key_path: KeyPath, place: Place | None = None) -> None:
        place = place or self.document.place(key_path)
        self.problems.append(Problem(message, format_path(key_path), place))


def _has_type(value: Any) -> bool:
    """Return whether a value in the slot of a class names a registered subclass."""
    return isinstance(value, str) or (isinstance(value, dict) and "type" in value)


def _parent(key_path: KeyPath) -> KeyPath:
    """Return the path of the part that contains a part, which may be in a list."""
    while key_path and isinstance(key_path[-1], int):
        key_path = key_path[:-1]
    return key_path[:-1]


def _locate(value: Any, key_path: KeyPath) -> tuple[KeyPath, Any]:
    """Return the path of an error that exists in the value; pydantic adds steps for unions."""
    found: KeyPath = ()
    for step in key_path:
        try:
            value = value[step]
        except (TypeError, KeyError, IndexError):
            continue
        found = (*found, step)
    return found, value


def _describe_value(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty"
    try:
        text = repr(value)
    except Exception:  # an integer with too many digits, or an object of a plugin
        text = f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 40 else text[:37] + "..."
