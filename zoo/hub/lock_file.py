"""``zoo.lock``: which commit each moving reference stood for, kept beside the user's project."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zoo.errors import HubError, SpecError
from zoo.files import atomic_write, lock_dir, os_error_message
from zoo.hub import names
from zoo.hub.reference import Reference
from zoo.hub.tree import Tree
from zoo.spec.document import Document, read_file

LOCK_FILE = "zoo.lock"
_HEADER = "# Written by zoo pull: what each reference stood for. 'zoo pull --locked' keeps to it.\n"


@dataclass(frozen=True)
class Pin:
    """A commit, and the hashes of its weights."""

    commit: str
    weights: Mapping[str, str] = field(default_factory=dict)

    def check(self, tree: Tree) -> None:
        """Refuse a listing that gives pinned weights another hash."""
        for name, sha256 in self.weights.items():
            found = tree[name].sha256 if name in tree else None
            if found != sha256:
                raise HubError(
                    f"{name} at {self.commit[:12]} should have sha256 {sha256}, but the hub says "
                    f"{found or 'it has none'}; {LOCK_FILE} or the catalogue pins it"
                )

    def check_all_pinned(self, wanted: Iterable[str], tree: Tree) -> None:
        """Refuse weights that are not pinned, where others are."""
        for name in wanted:
            if self.weights and tree[name].sha256 and name not in self.weights:
                raise HubError(
                    f"{name} at {self.commit[:12]} is not pinned, but {', '.join(self.weights)} "
                    f"of this commit are; {LOCK_FILE} or the catalogue says so"
                )


def read_lock(folder: Path | None = None) -> dict[str, Pin]:
    """Every pin by its reference; empty where there is no lock."""
    path = (folder or Path.cwd()) / LOCK_FILE
    if not path.is_file():
        return {}
    try:
        document = read_file(path)
    except SpecError as error:
        raise HubError(f"the lock cannot be used: {error}") from None
    rows = document.data.get("models") if isinstance(document.data, dict) else None
    if document.problems or not isinstance(rows, dict) or document.data.get("zoo") != 1:
        raise _format_error(document, ())
    return {str(key): _parse_pin(document, key) for key in rows}


def write_pin(reference: Reference, pin: Pin, folder: Path | None = None) -> None:
    """Note the pin beside the others; the lock is replaced whole or not at all."""
    path = (folder or Path.cwd()) / LOCK_FILE
    try:
        with lock_dir(path.parent):
            pins = read_lock(folder)
            if pins.get(str(reference)) != pin:
                _write_lock(path, {**pins, str(reference): pin})
    except OSError as error:
        raise HubError(f"{path} cannot be written: {os_error_message(error)}") from None


def _write_lock(path: Path, pins: Mapping[str, Pin]) -> None:
    rows = {
        key: {"commit": pin.commit, "weights": dict(pin.weights)}
        for key, pin in sorted(pins.items())
    }
    text = json.dumps({"zoo": 1, "models": rows}, indent=2)  # JSON is YAML, and quotes
    with atomic_write(path) as temp_path:
        temp_path.write_text(f"{_HEADER}{text}\n", encoding="utf-8")


def _parse_pin(document: Document, key: str) -> Pin:
    row: Any = document.data["models"][key]
    weights = row.get("weights", {}) if isinstance(row, dict) else None
    if not isinstance(weights, dict):
        raise _format_error(document, ("models", key))
    where = str(document.place(("models", key)))
    return Pin(
        names.validate_digest(row.get("commit"), "commit", where),
        {
            names.validate_file_name(name, where): names.validate_digest(value, "sha256", where)
            for name, value in weights.items()
        },
    )


def _format_error(document: Document, key_path: tuple[str, ...]) -> HubError:
    place = document.place(key_path) or document.file
    return HubError(f"{place}: the lock has not the form zoo pull writes; remove it and pull again")
