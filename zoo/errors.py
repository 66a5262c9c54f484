"""What goes wrong, in words for the person who can mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zoo.about import DISTRIBUTION


class ZooError(Exception):
    """Anything the user can mend; the command line prints it without a traceback."""


@dataclass(frozen=True)
class Place:
    """Where something stands in a text, counted from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def truncate(text: str, max_chars: int = 1_000) -> str:
    """The text, cut to a bearable length."""
    return text if len(text) <= max_chars else text[: max_chars - 3] + "..."


@dataclass(frozen=True)
class Problem:
    """One fault of a spec: what, at which path of the tree, and where in the file."""

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
    """A spec that cannot become a model, with every fault found in it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class WidthConflict(ZooError):
    """Widths that do not fit together; raised by a part, given their origin by the core.

    >>> raise WidthConflict("dot needs queries and keys of one width", query_dim=4, key_dim=6)
    Traceback (most recent call last):
    zoo.errors.WidthConflict: dot needs queries and keys of one width: query_dim is 4, key_dim is 6
    """

    def __init__(self, reason: str, **widths: int) -> None:
        self.reason = reason
        self.widths = widths
        super().__init__(f"{reason}: " + ", ".join(f"{k} is {v}" for k, v in widths.items()))


class RegistryError(ZooError):
    """A name that no plugin, or more than one, answers to."""


class ArtifactError(ZooError):
    """A model file that cannot be written, read or trusted."""


class HubError(ZooError):
    """A repository of the Hugging Face Hub that cannot be read, written or trusted."""


class ZooWarning(UserWarning):
    """Something that works, but that the user should know of; the command line prints it."""


class MissingExtra(ZooError):
    """A library that an optional part needs is not installed."""

    def __init__(self, what: str, *, library: str, extra: str) -> None:
        super().__init__(
            f"{what} needs {library}, which is not installed; "
            f"install it with: pip install '{DISTRIBUTION}[{extra}]'"
        )


_MAX_LISTED = 30
"""Names in a message; where there are more, the command that lists them says it better."""


def suggest(name: str, available: Iterable[str], *, list_command: str = "") -> str:
    """The tail of a message about a name that was not found; `list_command` is the command that lists all."""
    options = sorted(set(available))
    close = difflib.get_close_matches(truncate(name, 100), options, n=1, cutoff=0.6)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    if list_command and len(options) > _MAX_LISTED:
        return f"{hint} ('{list_command}' lists all {len(options)})"
    return f"{hint} (available: {', '.join(options) or 'none'})"


def with_article(kind: str) -> str:
    """The kind with the article it takes."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
