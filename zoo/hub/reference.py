"""References to models: paths, catalogue names and Hub repositories."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from zoo.errors import HubError
from zoo.hub import names

_SCHEME = "hub:"


@dataclass(frozen=True)
class Reference:
    """A repository and a branch, tag or commit."""

    repo: str
    revision: str = "main"

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}"

    @property
    def is_mutable(self) -> bool:
        """Return whether the revision can move: it is not a commit."""
        return not names.is_commit(self.revision)


def parse_reference(text: str, revision: str | None = None) -> Reference:
    """Parse `org/name` or `org/name@revision`, with or without the prefix `hub:`."""
    repo, separator, suffix = text.removeprefix(_SCHEME).partition("@")
    if separator and revision is not None and revision != suffix:
        raise HubError(f"{text} has revision '{suffix}', but revision='{revision}' was passed")
    chosen = suffix if separator else revision or "main"
    return Reference(names.validate_repo_id(repo, text), names.validate_revision(chosen))


def local_path(source: str | os.PathLike[str]) -> Path | None:
    """Return the path if the source is one. An existing path takes precedence over the Hub.

    Raises:
        HubError: if `folder/name` does not exist but `folder` does: it can be a repository, or a
            path with a typing error.
    """
    text = os.fspath(source)
    if isinstance(source, os.PathLike) or (os.path.exists(text) and "\0" not in text):
        return Path(text)
    if text.startswith(_SCHEME):
        return None
    bare = text.partition("@")[0]
    path_like = bare.startswith((".", "~", os.sep)) or bare.count("/") > 1
    if path_like or bare.endswith((".safetensors", ".json", os.sep)):
        return Path(text)
    folder = bare.partition("/")[0]
    if bare == text != folder and os.path.isdir(folder):
        raise HubError(
            f"{text} does not exist, but the folder {folder} does; write ./{text} for a path, or "
            f"{_SCHEME}{text} for a repository on the Hub"
        )
    return None


def is_repository(text: str) -> bool:
    """Return whether the text is a repository and not a catalogue name."""
    return text.startswith(_SCHEME) or "/" in text
