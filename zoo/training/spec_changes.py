"""Differences between the spec of a checkpoint and the spec that continues it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from zoo.errors import ZooError, truncate

_FIXED = {
    "model": "the weights of the checkpoint belong to the old model",
    "init": "the weights are initialised already",
    "objective": "the best result so far belongs to the old objective",
    "preprocessing": "the weights belong to the old inputs",
    "train.data": "the position in the data would be another",
    "train.batch": "the position in the data would be another",
    "train.bad_data": "the position in the data would be another",
    "train.seed": "the order of the data would be another",
    "train.optimiser.type": "the state in the checkpoint belongs to the old optimiser",
    "train.start": "the run has started from the old weights",
    "train.average": "the averages in the checkpoint have other terms",
}
"""Keys that cannot change when a run is resumed, by reason; all others can."""
_MAX_PART = 1000
"""Most characters of a part of a spec in a message."""


class Change(NamedTuple):
    """A value that differs: its path in the spec, the old and the new value."""

    path: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.path}: {_format(self.old)} -> {_format(self.new)}"


def find_changes(old: Any, new: Any, path: str = "") -> Iterator[Change]:
    """Yield the differences of two resolved specs, by path."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            below = f"{path}.{key}" if path else str(key)
            yield from find_changes(old.get(key), new.get(key), below)
    elif old != new:
        yield Change(path, old, new)


def check_changes(changes: list[Change]) -> None:
    """Raise ZooError for changes with which a run cannot be continued."""
    problems = []
    for change in changes:
        reason = next((why for key, why in _FIXED.items() if _is_below(change.path, key)), None)
        if reason:
            problems.append(f"{change}: {reason}")
    if problems:
        listed = "\n  ".join(problems)
        raise ZooError(
            f"the run cannot be resumed after these changes of the spec:\n  {listed}\n"
            "undo them, or start a new run in another folder"
        )


def _is_below(path: str, key: str) -> bool:
    return path == key or path.startswith(f"{key}.")


def _format(value: Any) -> str:
    """Return a value in one line: a part of a spec as YAML, with all its keys."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key}: {_format(each)}" for key, each in value.items())
        return truncate(f"{{{pairs}}}", _MAX_PART)
    return "not set" if value is None else truncate(str(value), 80)
