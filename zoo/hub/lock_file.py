"""`zoo.lock`: the commit and the hashes recorded for each pulled reference."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zoo.errors import HubError, SpecError
from zoo.files import atomic_write, hash_file, lock_dir, os_error_message, resolve_target
from zoo.hub import names
from zoo.hub.reference import Reference
from zoo.hub.tree import Tree
from zoo.spec.document import Document, read_file

LOCK_FILE = "zoo.lock"
_HEADER = "# Written by 'zoo pull'. 'zoo pull --locked' uses these commits.\n"


@dataclass(frozen=True)
class Pin:
    """A commit and the sha256 of its weight files."""

    commit: str
    weights: Mapping[str, str] = field(default_factory=dict)

    def check(self, tree: Tree) -> None:
        """Raise HubError if a file is missing, or the Hub lists another sha256 than the pinned one.

        The Hub lists none for files outside LFS; `check_file` checks them.
        """
        for name in self.weights:
            if name not in tree:
                raise HubError(
                    f"{name}, which {LOCK_FILE} or the catalogue lists, does not exist at "
                    f"{self.commit[:12]}"
                )
            self._check_sha256(name, tree[name].sha256 or self.weights[name])

    def check_file(self, name: str, path: Path) -> None:
        """Raise HubError if a downloaded file has another sha256 than the pinned one."""
        if name in self.weights:
            self._check_sha256(name, hash_file(path))

    def _check_sha256(self, name: str, found: str) -> None:
        if found != self.weights[name]:
            raise HubError(
                f"{name} at {self.commit[:12]} has sha256 {found} on the Hub, but {LOCK_FILE} or "
                f"the catalogue expects {self.weights[name]}"
            )

    def check_all_pinned(self, file_names: Iterable[str]) -> None:
        """Raise HubError if some weight files are pinned, but not all."""
        for name in file_names:
            # Lock files of earlier versions do not list the index.
            if self.weights and name not in self.weights and not name.endswith(".json"):
                raise HubError(
                    f"{name} at {self.commit[:12]} is not pinned in {LOCK_FILE} or the catalogue, "
                    f"but {', '.join(self.weights)} of the same commit are"
                )


def read_lock(folder: Path | None = None) -> dict[str, Pin]:
    """Return the pins by reference; empty without a lock file."""
    path = (folder or Path.cwd()) / LOCK_FILE
    try:
        exists = resolve_target(path).exists()
    except NotADirectoryError:
        exists = False
    except OSError as error:
        raise HubError(f"{path} cannot be read: {os_error_message(error)}") from None
    return _parse_lock(path) if exists else {}


def _parse_lock(path: Path) -> dict[str, Pin]:
    try:
        document = read_file(path)
    except SpecError as error:
        raise HubError(f"{LOCK_FILE} cannot be read: {error}") from None
    rows = document.data.get("models") if isinstance(document.data, dict) else None
    if document.problems or not isinstance(rows, dict) or document.data.get("zoo") != 1:
        raise _format_error(document, ())
    return {str(key): _parse_pin(document, key) for key in rows}


def write_pin(reference: Reference, pin: Pin, folder: Path | None = None) -> None:
    """Add or replace a pin. The file is replaced atomically."""
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
    text = json.dumps({"zoo": 1, "models": rows}, indent=2)  # valid YAML, with quoted commits
    with atomic_write(path) as temp_path:
        temp_path.write_text(f"{_HEADER}{text}\n", encoding="utf-8")
        try:
            _parse_lock(temp_path)
        except HubError as error:
            reason = str(error).replace(str(temp_path), str(path))
            raise HubError(
                f"the commit was not recorded: with {len(pins):,} references, {reason}; remove "
                "references that are not used, or pull in another directory"
            ) from None


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
    return HubError(f"{place}: not a valid lock file; remove it and run 'zoo pull' again")
