"""The classes that slots name, such as `Attention`, as ``zoo show`` prints them."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterable, Iterator
from typing import Any

from zoo.cli.index.parameters import describe_parameters
from zoo.cli.index.records import PartRecord
from zoo.interfaces import Entry
from zoo.interfaces.signature import parameters

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


def _parts_of(cls: type[Any], seen: set[type[Any]]) -> Iterator[type[Any]]:
    for parameter in parameters(cls):
        target = parameter.slot.target if parameter.slot else None
        if target is not None and not hasattr(target, "kind") and target not in seen:
            seen.add(target)
            yield target
            yield from _parts_of(target, seen)
