"""Patterns for the paths of parameters and modules, such as ``encoder.blocks.{0..5}.*``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from itertools import product
from math import prod

from zoo.errors import ZooError, suggest

_RANGE = re.compile(r"(\d{1,6})\.\.(\d{1,6})")
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
        # `translate` of a pattern with stars gives an expression that does not backtrack.
        self._expressions = [
            re.compile(translate(path + ending)) for path in _expand(text) for ending in ("", ".*")
        ]

    def matches(self, path: str) -> bool:
        """Return whether a path, or one that contains it, matches."""
        return any(expression.match(path) for expression in self._expressions)

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


def _expand(text: str) -> list[str]:
    """Return a pattern for each combination of the words in braces."""
    pieces = [
        _words(piece[1:-1], text) if piece.startswith("{") else [piece]
        for piece in re.split(r"(\{[^{}]*\})", text)
    ]
    if any(brace in piece for piece, *_ in pieces for brace in "{}"):
        raise ZooError(f"'{text}' has a brace that is not part of {{0..5}} or {{query,value}}")
    if prod(map(len, pieces)) > _MAX_PATHS:
        raise ZooError(f"'{text}' stands for more than {_MAX_PATHS:,} paths")
    return ["".join(words) for words in product(*pieces)]


def _words(content: str, text: str) -> Sequence[str]:
    numbers = _RANGE.fullmatch(content)
    if numbers is None:
        return [word.strip() for word in content.split(",")]
    first, last = map(int, numbers.groups())
    if not first <= last < first + _MAX_PATHS:
        raise ZooError(f"'{text}': '{content}' should be a range of 1 to {_MAX_PATHS:,} integers")
    return [str(number) for number in range(first, last + 1)]
