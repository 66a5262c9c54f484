"""The classes that slots name, such as `Attention`, and the sections of a spec, as ``zoo show``
prints them."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from zoo.cli.index.parameters import describe_parameters
from zoo.cli.index.records import PartRecord
from zoo.interfaces import Entry
from zoo.interfaces.signature import parameters
from zoo.spec.spec import Sections

_log = logging.getLogger(__name__)


def part_name(cls: type[Any]) -> str:
    """Return the name of a class in lower-case words joined by hyphens: ``feed-forward``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()


def describe_parts(entries: Iterable[Entry]) -> list[PartRecord]:
    """Return one record for each class that a slot of a component names, also in other parts."""
    users: dict[type[Any], list[str]] = {}
    for entry in entries:
        for part in _parts_of(entry.cls, set()):
            users.setdefault(part, []).append(f"{entry.kind} {entry.name}")
    records = []
    for part, used_by in sorted(users.items(), key=lambda item: part_name(item[0])):
        doc = inspect.getdoc(part) or ""
        try:
            rows = describe_parameters(part)
        except Exception as error:  # raised by a default value, for example
            _log.info("part '%s' cannot be described: %s", part.__name__, error)
            continue
        records.append(PartRecord(part_name(part), part.__name__, doc, rows, used_by))
    return records


def describe_sections() -> list[PartRecord]:
    """Return one record for a spec, for its sections, and for each key of a section that has keys
    of its own: ``spec``, ``train``, ``train.batch``."""
    found: list[tuple[str, type[Any]]] = [("spec", Sections)]
    records = []
    for name, cls in found:
        rows = describe_parameters(cls)
        for number, parameter in enumerate(parameters(cls)):
            if parameter.slot is None:
                continue
            path = parameter.name if cls is Sections else f"{name}.{parameter.name}"
            kind = getattr(parameter.slot.target, "kind", None)
            if kind is None:
                found.append((path, parameter.slot.target))
                rows[number] = replace(rows[number], values=f"see 'zoo show {path}'")
            elif cls is Sections:
                doc = f"{rows[number].values}; see 'zoo list --kind {kind}'"
                records.append(PartRecord(path, path, doc, [], []))
        records.append(PartRecord(name, cls.__name__, inspect.getdoc(cls) or "", rows, []))
    return records


def _parts_of(cls: type[Any], seen: set[type[Any]]) -> Iterator[type[Any]]:
    for parameter in parameters(cls):
        target = parameter.slot.target if parameter.slot else None
        if target is not None and not hasattr(target, "kind") and target not in seen:
            seen.add(target)
            yield target
            yield from _parts_of(target, seen)
