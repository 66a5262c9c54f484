"""Patterns for the paths of parameters and modules, such as ``encoder.blocks.{0..5}.*``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod

from zoo.errors import ZooError, suggest

_RANGE = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}")
_MAX_LENGTH = 1000
_MAX_PATHS = 4096


class PathPattern:
    """A pattern for paths of a model.

    ``*`` matches any characters, ``{0..5}`` the integers 0 to 5, ``{query,value}`` one of the
    words. A pattern also matches everything below a path that it matches, so ``encoder`` is the
    whole encoder.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if not text or len(text) > _MAX_LENGTH or re.search(r"[\[\]?]", text):
            raise ZooError(
                f"a pattern should be a path of 1 to {_MAX_LENGTH:,} characters, with *, {{0..5}} "
                f"or {{query,value}} for parts of it, but is '{text[:80]}'"
            )
        self._pieces = _split(text)

    def matches(self, path: str) -> bool:
        """Return whether a path, or one that contains it, matches."""
        ends = {0}  # where the pieces so far can end in the path
        for words in self._pieces:
            if words is None:
                ends = set(range(min(ends), len(path) + 1))
            else:
                sizes = {len(word) for word in words}
                ends = {n + size for n in ends for size in sizes if path[n : n + size] in words}
            if not ends:
                return False
        return any(path[end : end + 1] in ("", ".") for end in ends)

    def __repr__(self) -> str:
        return f"PathPattern({self.text!r})"


def select_paths(patterns: Sequence[str], paths: Iterable[str]) -> list[str]:
    """Return the paths that match a pattern, in their order.

    Raises:
        ZooError: a pattern matches none of the paths.
    """
    known = list(paths)
    selected: set[str] = set()
    for text in patterns:
        pattern = PathPattern(text)
        matched = [path for path in known if pattern.matches(path)]
        if not matched:
            depth = re.sub(r"\{[^{}]*\}", "*", text).count(".") + 1
            hint = suggest(text, [*known, *_parts(known), *_parts(known, depth)]).partition(" (")[0]
            listed = ", ".join(_parts(known))
            raise ZooError(f"'{text}' matches nothing in the model{hint} (parts: {listed})")
        selected.update(matched)
    return [path for path in known if path in selected]


def _parts(paths: Iterable[str], depth: int = 1) -> list[str]:
    """Return the first steps of paths, this many."""
    return list(dict.fromkeys(".".join(path.split(".")[:depth]) for path in paths))


def _split(text: str) -> list[frozenset[str] | None]:
    """Return the words that each part of a pattern matches, None for a star."""
    parts = re.split(r"(\*|\{[^{}]*\})", text)  # in turn without and with a star or braces
    if any(brace in part for part in parts[::2] for brace in "{}"):
        raise ZooError(f"'{text}' has a brace that is not part of {{0..5}} or {{query,value}}")
    pieces = [None if part == "*" else _words(part, text) for part in parts if part]
    if prod(len(words) for words in pieces if words is not None) > _MAX_PATHS:
        raise ZooError(f"'{text}' stands for more than {_MAX_PATHS:,} paths")
    return pieces


def _words(part: str, text: str) -> frozenset[str]:
    if part[0] != "{":
        return frozenset([part])
    numbers = _RANGE.fullmatch(part)
    if numbers is None:
        return frozenset(word.strip() for word in part[1:-1].split(","))
    first, last = map(int, numbers.groups())
    if not first <= last < first + _MAX_PATHS:
        limits = f"a range of 1 to {_MAX_PATHS:,} integers"
        raise ZooError(f"'{text}': '{part[1:-1]}' should be {limits}")
    return frozenset(str(number) for number in range(first, last + 1))
