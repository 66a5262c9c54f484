"""Alignment of the words of two texts, as in the METEOR 1.5 program."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

BEAM = 40

EXACT, STEM = 0, 1


class Match(NamedTuple):
    """A word of the hypothesis aligned with a word of the reference."""

    hypothesis: int
    reference: int
    matcher: int


class _Path(NamedTuple):
    """A partial alignment. `end` is the position after the last match of an open chunk, or -1."""

    exact: int = 0
    chunks: int = 0
    distance: int = 0
    end: int = -1
    used: frozenset[int] = frozenset()
    matches: tuple[Match, ...] = ()

    def rank(self) -> tuple[int, int, int]:
        return -self.exact, self.chunks, self.distance

    def add(self, match: Match, distance: int) -> "_Path":
        new_chunk = self.end not in (-1, match.hypothesis)
        return _Path(
            self.exact + (match.matcher == EXACT),
            self.chunks + new_chunk,
            distance,
            match.hypothesis + 1,
            self.used | {match.hypothesis},
            (*self.matches, match),
        )

    def skip(self, distance: int) -> "_Path":
        """Leave a word of the reference unaligned, which ends a chunk."""
        return self._replace(chunks=self.chunks + (self.end != -1), distance=distance, end=-1)


def align(
    hypothesis: Sequence[str], reference: Sequence[str], stem: Callable[[str], str]
) -> tuple[tuple[Match, ...], int]:
    """Return the matches and the number of chunks of the best alignment.

    Beam search over the words of the reference. An alignment is better if it has more exact
    matches, then fewer chunks, then a smaller distance. The distance is accumulated as in the
    program: for an alternative, the distances of those tried before it are added, not its own.
    Matches without an alternative are part of every alignment.
    """
    matches = _find_matches(hypothesis, reference, stem)
    count = [0] * len(hypothesis)
    for alternatives in matches:
        for match in alternatives:
            count[match.hypothesis] += 1
    fixed = [
        alternatives[0]
        if len(alternatives) == 1 and count[alternatives[0].hypothesis] == 1
        else None
        for alternatives in matches
    ]
    paths = [_Path(used=frozenset(match.hypothesis for match in fixed if match is not None))]
    for only, alternatives in zip(fixed, matches, strict=True):
        paths = sorted(paths, key=_Path.rank)[:BEAM]
        if only is not None:
            step = abs(only.hypothesis - only.reference)
            paths = [path.add(only, path.distance + step) for path in paths]
        else:
            paths = [after for path in paths for after in _extend(path, alternatives)]
    paths = [path.skip(path.distance) for path in sorted(paths, key=_Path.rank)[:BEAM]]
    best = min(paths, key=_Path.rank)
    return best.matches, best.chunks


def _extend(path: _Path, alternatives: Sequence[Match]) -> list[_Path]:
    paths, distance = [], path.distance
    for match in alternatives:
        if match.hypothesis not in path.used:
            paths.append(path.add(match, distance))
            distance += abs(match.hypothesis - match.reference)
    return [*paths, path.skip(distance)]


def _find_matches(
    hypothesis: Sequence[str], reference: Sequence[str], stem: Callable[[str], str]
) -> list[list[Match]]:
    """Return all possible matches of each word of the reference, exact ones first."""
    # As in the program, stems are not compared if the texts are equal.
    use_stems = list(hypothesis) != list(reference)
    stems = [stem(word) for word in hypothesis] if use_stems else []
    matches = []
    for j, word in enumerate(reference):
        exact = [Match(i, j, EXACT) for i, other in enumerate(hypothesis) if other == word]
        target = stem(word) if use_stems else ""
        similar = [
            Match(i, j, STEM)
            for i, other in enumerate(stems)
            if other == target and hypothesis[i] != word
        ]
        matches.append(exact + similar)
    return matches
