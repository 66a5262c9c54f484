"""Matching of names against sequences of alternatives, in polynomial time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from zoo.errors import ZooError

INTEGER = re.compile(r"0|[1-9][0-9]{0,8}")
MAX_STEPS = 4_000_000
"""Steps of matching all names of a file with all rules of a map."""
_INTEGER_STEPS = 3


class MatchingWork:
    """Counts the steps of matching, and raises ZooError above a limit."""

    def __init__(self) -> None:
        self.steps = 0

    def add(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise ZooError(
                "the rules take too long to match; use fewer rules, or fewer placeholders in a name"
            )


class Alternatives:
    """Texts that can occur at a position, longest first; any integer if `words` is None."""

    def __init__(self, words: Sequence[str] | None) -> None:
        self.words = None if words is None else frozenset(words)
        self.lengths = sorted({len(word) for word in words or ()}, reverse=True)

    def lengths_at(self, name: str, start: int) -> Iterator[int]:
        """Yield the lengths of the texts that occur at a position."""
        if self.words is None:
            integer = INTEGER.match(name, start)
            yield from range(integer.end() - start, 0, -1) if integer else ()
        else:
            for length in self.lengths:
                if name[start : start + length] in self.words:
                    yield length


class Matcher:
    """Splits a name into one text for each of several alternatives."""

    def __init__(self, alternatives: Sequence[Alternatives]) -> None:
        self.alternatives = alternatives

    def split(self, name: str, work: MatchingWork | None = None) -> list[str] | None:
        """Return the texts, with the longest possible first, or None if the name does not match.

        A state is a number of alternatives and a position. Each is visited at most once.
        """
        work = work or MatchingWork()
        failed: set[tuple[int, int]] = set()
        starts = [0]
        pending = [self._lengths(0, name, 0, work)]
        while pending:
            length = next(pending[-1], None)
            if length is None:
                pending.pop()
                failed.add((len(pending), starts.pop()))
                continue
            end, depth = starts[-1] + length, len(pending)
            if depth == len(self.alternatives):
                if end == len(name):
                    return [name[a:b] for a, b in zip(starts, [*starts[1:], end], strict=True)]
            elif (depth, end) not in failed:
                starts.append(end)
                pending.append(self._lengths(depth, name, end, work))
        return None

    def _lengths(self, index: int, name: str, start: int, work: MatchingWork) -> Iterator[int]:
        alternatives = self.alternatives[index]
        work.add(_INTEGER_STEPS if alternatives.words is None else 1 + len(alternatives.lengths))
        return alternatives.lengths_at(name, start)
