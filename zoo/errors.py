"""Exceptions and warnings, and helpers for their messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zoo.about import DISTRIBUTION


class ZooError(Exception):
    """Base class of errors that the user can fix; printed without a traceback."""


@dataclass(frozen=True)
class Place:
    """Position in a text file; line and column start at 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def truncate(text: str, max_chars: int = 1_000) -> str:
    """Return the text, cut to at most `max_chars` characters."""
    return text if len(text) <= max_chars else text[: max_chars - 3] + "..."


@dataclass(frozen=True)
class Problem:
    """One error in a spec: the message, the path in the tree and the place in the file."""

    message: str
    path: str = ""
    place: Place | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", truncate(self.message))
        object.__setattr__(self, "path", truncate(self.path, 200))

    def __str__(self) -> str:
        return ": ".join(str(part) for part in (self.place, self.path, self.message) if part)

    def as_json(self) -> dict[str, object]:
        place = self.place
        return {
            "file": place.file if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "path": self.path,
            "message": self.message,
        }


class SpecError(ZooError):
    """Invalid spec, with all problems found in it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class WidthConflict(ZooError):
    """Dimensions that do not match; raised by a part, and the core adds where each comes from.

    >>> raise WidthConflict("dot needs queries and keys of equal size", query_dim=4, key_dim=6)
    Traceback (most recent call last):
    zoo.errors.WidthConflict: dot needs queries and keys of equal size: query_dim is 4, key_dim is 6
    """

    def __init__(self, reason: str, **widths: int) -> None:
        self.reason = reason
        self.widths = widths
        super().__init__(f"{reason}: " + ", ".join(f"{k} is {v}" for k, v in widths.items()))


class RegistryError(ZooError):
    """Name that no plugin, or more than one, provides."""


class ArtifactError(ZooError):
    """Model file that cannot be written, read or verified."""


class HubError(ZooError):
    """Hugging Face Hub repository that cannot be read, written or verified."""


class ZooWarning(UserWarning):
    """Warning to the user; the command line prints it."""


class MissingExtra(ZooError):
    """Optional library that is not installed."""

    def __init__(self, what: str, *, library: str, extra: str) -> None:
        super().__init__(
            f"{what} needs {library}, which is not installed; "
            f"install it with: pip install '{DISTRIBUTION}[{extra}]'"
        )


_MAX_LISTED = 30
"""Longest list of names in a message."""


def suggest(name: str, available: Iterable[str], *, list_command: str = "") -> str:
    """Return the end of a message about an unknown name: the closest match and what is available.

    `list_command` is the command to name instead of a long list.
    """
    options = sorted(set(available))
    close = difflib.get_close_matches(truncate(name, 100), options, n=1, cutoff=0.6)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    if list_command and len(options) > _MAX_LISTED:
        return f"{hint} ('{list_command}' lists all {len(options)})"
    return f"{hint} (available: {', '.join(options) or 'none'})"


def with_article(kind: str) -> str:
    """Return the kind with its indefinite article."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
