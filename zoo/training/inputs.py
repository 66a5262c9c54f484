"""What shaped a run besides its spec: tokenizers, classes and the content of its data files."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from zoo.artifact.loading import read_header
from zoo.data.named_files import PathContent, hash_content, named_paths
from zoo.errors import SpecError, ZooError
from zoo.interfaces import Model
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.spec import Spec, load_spec
from zoo.training.spec_changes import find_changes
from zoo.training.stored_checkpoint import MODEL_FILE, StoredCheckpoint

KEY = "inputs"
"""Key of the contents in the state of a checkpoint."""
PARTS = ("data", "validation")
MAX_BYTES = 2**26
"""Size of the files whose content is hashed before training; that of others while it runs."""

Contents = dict[str, dict[str, PathContent]]
"""Contents by dataset of the section ``train``, and by path."""


class RunInputs:
    """The contents of the data files of a run.

    Files with equal times are equal, so their content is read once: when the training starts, or
    in a thread while it runs if they are large. Checkpoints have the hashes known so far.
    """

    def __init__(self, spec: Spec) -> None:
        train = spec.resolve().get("train") or {}
        self.contents: Contents = {
            part: {str(path): PathContent.of(path) for path in named_paths(train.get(part))}
            for part in PARTS
        }

    def compare(self, stored: StoredCheckpoint) -> Iterator[tuple[str, str]]:
        """Yield the changes since a checkpoint: the part of the section ``train``, and a sentence.

        Checkpoints of previous versions have no contents to compare.
        """
        for part, old in _read(stored).items():
            for path, before in old.items():
                now = self.contents.get(part, {}).get(path)
                if now is not None and not self._is_equal(part, before, now):
                    yield part, f"train.{part}: the content of {path} has changed"

    def _is_equal(self, part: str, before: PathContent, now: PathContent) -> bool:
        """Return whether a content is the same, read only if its times differ."""
        sha256 = before.sha256
        if now.times != before.times:
            if sha256 is None or (now.files, now.size) != (before.files, before.size):
                return False
            with contextlib.suppress(OSError):
                sha256 = hash_content(Path(now.path))
            if sha256 != before.sha256:
                return False
        self.contents[part][now.path] = replace(now, sha256=sha256)
        return True

    def start_hashing(self) -> None:
        """Hash what is not known: small files now, larger ones in a thread."""
        waiting = []
        for part, found in self.contents.items():
            for path, content in found.items():
                if content.sha256 is None:
                    if content.size <= MAX_BYTES:
                        self._hash(part, path)
                    else:
                        waiting.append((part, path))
        if waiting:
            threading.Thread(target=self._hash_all, args=(waiting,), daemon=True).start()

    def _hash_all(self, waiting: list[tuple[str, str]]) -> None:
        for part, path in waiting:
            self._hash(part, path)

    def _hash(self, part: str, path: str) -> None:
        with contextlib.suppress(OSError):  # reported where the data is read
            self.contents[part][path] = replace(
                self.contents[part][path], sha256=hash_content(Path(path))
            )

    def as_json(self) -> dict[str, Any]:
        """Return what is known so far, for a checkpoint."""
        return {
            part: [content.as_json() for content in found.values()]
            for part, found in self.contents.items()
        }


def _read(stored: StoredCheckpoint) -> Contents:
    """Return the contents in a checkpoint."""
    try:
        return {
            part: {each["path"]: PathContent(**each) for each in found}
            for part, found in stored.data.get(KEY, {}).items()
        }
    except (TypeError, KeyError, AttributeError):
        raise stored.damage("state.json", f"'{KEY}' is not valid") from None


def find_preprocessing_changes(
    stored: StoredCheckpoint, model: Model, registry: ComponentRegistry | None
) -> list[str]:
    """Return how tokenizers, classes and other preprocessing differ from those of a checkpoint."""
    header = read_header(stored.path / MODEL_FILE)
    old: Mapping[str, Any] = header.spec
    with contextlib.suppress(SpecError):  # parameters that were added since have their defaults
        old = load_spec(header.spec, registry=registry).resolve()
    new, key = model.spec or {}, "preprocessing"
    changes = [str(change) for change in find_changes(old.get(key) or {}, new.get(key) or {}, key)]
    tokenizers = model.tokenizer or {}
    for name in dict.fromkeys((*header.tokenizer, *tokenizers)):
        if header.tokenizer.get(name) != tokenizers.get(name):
            changes.append(f"{key}.{name}: the content of the tokenizer has changed")
    return changes


def reject_changes(stored: StoredCheckpoint, changes: list[str]) -> None:
    """Raise ZooError for inputs with which a run cannot be continued."""
    if changes:
        listed = "; ".join(changes)
        raise ZooError(
            f"the run cannot be resumed from {stored.path}: {listed}; restore what has changed, or "
            "start a new run in another folder"
        )
