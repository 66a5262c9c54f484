"""What people call a model: a path, a catalogue's name, or a repository of the Hub."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from zoo.errors import HubError
from zoo.hub import names

_SCHEME = "hub:"


@dataclass(frozen=True)
class Reference:
    """A repository at a branch, a tag or a commit."""

    repo: str
    revision: str = "main"

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}"

    @property
    def is_mutable(self) -> bool:
        """Whether it may stand for something else tomorrow."""
        return not names.is_commit(self.revision)


def parse_reference(text: str, revision: str | None = None) -> Reference:
    """``org/name``, ``org/name@revision``, either after ``hub:``."""
    repo, at, said = text.removeprefix(_SCHEME).partition("@")
    if at and revision is not None and revision != said:
        raise HubError(f"{text} names revision '{said}', but revision '{revision}' is asked for")
    wanted = said if at else revision or "main"
    return Reference(names.validate_repo_id(repo, text), names.validate_revision(wanted))


def local_path(source: str | os.PathLike[str]) -> Path | None:
    """The path, if that is what is meant: whatever exists here wins over a repository's name."""
    text = os.fspath(source)
    if isinstance(source, os.PathLike) or (os.path.exists(text) and "\0" not in text):
        return Path(text)
    if text.startswith(_SCHEME):
        return None
    bare = text.partition("@")[0]
    path_like = bare.startswith((".", "~", os.sep)) or bare.count("/") > 1
    return Path(text) if path_like or bare.endswith((".safetensors", ".json", os.sep)) else None


def is_repository(text: str) -> bool:
    """Whether the text is meant as a repository rather than as a catalogue's name."""
    return text.startswith(_SCHEME) or "/" in text
