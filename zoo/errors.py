"""Exceptions and warnings, and helpers for their messages."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from zoo.about import DISTRIBUTION


class ZooError(Exception):
    """Base class of errors that the user can fix; printed without a traceback."""


@dataclass(frozen=True)
class Place:
    """Place in a text file, or a whole file or option; line and column start at 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"


_CONTROLS = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f"
)
_CONTROL = re.compile(f"[{_CONTROLS}]")
_CONTROL_OR_LINE = re.compile(f"[{_CONTROLS}\\t\\n]")


def escape_controls(text: str) -> str:
    r"""Replace control characters except tab and newline by escapes, as in JSON.

    Control characters move the cursor, change colours or the title of a terminal, or reverse the
    direction of text.

    >>> escape_controls("a\x1b[2Jb")
    'a\\u001b[2Jb'
    """
    return _CONTROL.sub(_to_escape, text)


def one_line(text: str) -> str:
    """Replace all control characters, including tab and newline, by escapes."""
    return _CONTROL_OR_LINE.sub(_to_escape, text)


def _to_escape(match: re.Match[str]) -> str:
    return escape_characters(match[0])


def escape_characters(text: str) -> str:
    r"""Return each character as an escape, as in JSON.

    >>> escape_characters("é")
    '\\u00e9'
    """
    units = text.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def truncate(text: str, max_chars: int = 1_000) -> str:
    """Return the text, cut to at most `max_chars` characters."""
    return text if len(text) <= max_chars else text[: max_chars - 3] + "..."


def format_bytes(count: int) -> str:
    """Return a size with a decimal unit."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")


@dataclass(frozen=True)
class Problem:
    """One error in a spec: the message, the key path in the spec and the place in the file."""

    message: str
    path: str = ""
    place: Place | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", truncate(one_line(truncate(self.message))))
        object.__setattr__(self, "path", truncate(one_line(truncate(self.path, 200)), 200))

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
    """Raised when a spec is invalid, with all problems found in it, each once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(dict.fromkeys(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class WidthConflict(ZooError):
    """Raised by a part when widths do not match; the part's blueprint adds their origins.

    >>> raise WidthConflict("dot requires equal widths", query_dim=4, key_dim=6)
    Traceback (most recent call last):
    zoo.errors.WidthConflict: dot requires equal widths: query_dim is 4, key_dim is 6
    """

    def __init__(self, reason: str, **widths: int) -> None:
        self.reason = reason
        self.widths = widths
        super().__init__(f"{reason}: " + ", ".join(f"{k} is {v}" for k, v in widths.items()))


class InvalidParameter(ZooError):
    """Raised by a part for the value of a parameter that its type allows; the part's blueprint
    adds the place of the parameter.

    >>> raise InvalidParameter("warmup", "warmup is 9, but the training has 4 steps")
    Traceback (most recent call last):
    zoo.errors.InvalidParameter: warmup is 9, but the training has 4 steps
    """

    def __init__(self, parameter: str, message: str) -> None:
        self.parameter = parameter
        super().__init__(message)


class RegistryError(ZooError):
    """Raised when no plugin, or more than one, provides a name."""


class ArtifactError(ZooError):
    """Raised when a model file cannot be written, read or verified."""


class DataError(ZooError):
    """An example, or a file with examples, that cannot be used.

    Args:
        message: what is wrong.
        origin: where it is: ``train.en:17``.

    Attributes:
        skippable: whether it is of one example, which can be left out.
    """

    skippable = False

    def __init__(self, message: str, origin: str = "") -> None:
        super().__init__(f"{origin}: {message}" if origin else message)
        self.message = message
        self.origin = origin

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.origin)


class InputError(DataError):
    """An input of `zoo.generate` or `zoo.predict` that cannot be used.

    Args:
        message: what is wrong.
        number: which input it is, from 1.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message, f"input {number}")
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.number)


class HubError(ZooError):
    """Raised when a repository on the Hub cannot be read, written or verified."""


class ZooWarning(UserWarning):
    """Warning to the user; the command line prints it."""


class MissingExtra(ZooError):
    """Raised when an optional library is not installed.

    The command in the message requires the installed build of torch, because pip may replace it
    to install the newest version of a library that depends on torch.
    """

    def __init__(self, what: str, *, library: str, extra: str) -> None:
        super().__init__(
            f"{what} needs {library}, which is not installed; "
            f"install it with: pip install '{DISTRIBUTION}[{extra}]'{_torch_requirement()}"
        )


def _torch_requirement() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f" 'torch=={version('torch')}'"
    except PackageNotFoundError:
        return ""


_MAX_LISTED = 30
"""Maximum number of names listed in a message."""
_MAX_SEARCHED = 10_000


def suggest(name: str, available: Iterable[str], *, list_command: str = "") -> str:
    """Return the end of a message about an unknown name: the closest match and what is available.

    `list_command` is the command to name instead of a long list.
    """
    options = sorted(set(available))
    longer = [option for option in options if name and option.startswith(f"{name}-")]
    # The search compares the name with each option, and the options may come from a file.
    searched = [option for option in options[:_MAX_SEARCHED] if len(option) <= 200]
    close = difflib.get_close_matches(truncate(name, 100), searched, n=1, cutoff=0.6)
    names = " or ".join(f"'{option}'" for option in longer[:3] or close)
    hint = f"; did you mean {names}?" if names else ""
    if list_command and len(options) > _MAX_LISTED:
        return f"{hint} (see '{list_command}')"
    listed = ", ".join(truncate(option, 60) for option in options[:_MAX_LISTED])
    more = f" and {len(options) - _MAX_LISTED:,} more" if len(options) > _MAX_LISTED else ""
    return f"{hint} (available: {listed or 'none'}{more})"


def with_article(kind: str) -> str:
    """Return the kind with its indefinite article."""
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
