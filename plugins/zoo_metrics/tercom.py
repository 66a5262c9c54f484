"""Edits of TER in plain Python, for the method `reference` of metric ter."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_SHIFT_SIZE = 10
"""Largest number of words in a shift, as in Tercom."""


@dataclass(frozen=True)
class _Alignment:
    """Minimum edit distance of a hypothesis and a reference, and one alignment that has it.

    ``positions[j]`` is the hypothesis word aligned with reference word j, or the last one before it
    if word j is inserted. The errors are True for words that do not match.
    """

    distance: int
    positions: list[int]
    hypothesis_errors: list[bool]
    reference_errors: list[bool]


def count_edits(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """Count shifts and edits by the greedy search of Snover et al. 2006, algorithm 1."""
    words, shifts = list(hypothesis), 0
    while True:
        gain, *_, shifted = max(_shifts(words, reference), default=(0, words))
        if gain <= 0:
            return shifts + _align(words, reference).distance
        words, shifts = shifted, shifts + 1


def _shifts(
    words: list[str], reference: Sequence[str]
) -> Iterator[tuple[int, int, int, int, list[str]]]:
    """Yield candidate shifts, ordered by gain, length, start and target, as in Tercom."""
    alignment = _align(words, reference)
    for start, target, length in _matching_spans(words, reference):
        span = slice(start, start + length)
        is_correct = not any(alignment.hypothesis_errors[span])
        is_covered = not any(alignment.reference_errors[target : target + length])
        if is_correct or is_covered or start <= alignment.positions[target] < start + length:
            continue
        rest = words[:start] + words[start + length :]
        before = [-1, *alignment.positions][target : target + length + 1]
        for index in {position + 1 for position in before}:
            at = index if index <= start + length else index - length
            shifted = rest[:at] + words[span] + rest[at:]
            gain = alignment.distance - _align(shifted, reference).distance
            yield gain, length, -start, -index, shifted


def _matching_spans(words: list[str], reference: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield start, target and length of equal spans of words and reference."""
    for start in range(len(words)):
        for target in range(len(reference)):
            longest = min(MAX_SHIFT_SIZE, len(words) - start, len(reference) - target)
            for length in range(1, longest + 1):
                if words[start + length - 1] != reference[target + length - 1]:
                    break
                yield start, target, length


def _align(words: Sequence[str], reference: Sequence[str]) -> _Alignment:
    # Of equal costs the first step is chosen: substitution, deletion, insertion.
    rows = [[(j, "insert") for j in range(len(reference) + 1)]]
    for i, word in enumerate(words, 1):
        row = [(i, "delete")]
        for j, other in enumerate(reference, 1):
            steps = (
                (rows[-1][j - 1][0] + (word != other), "substitute"),
                (rows[-1][j][0] + 1, "delete"),
                (row[-1][0] + 1, "insert"),
            )
            row.append(min(steps, key=lambda step: step[0]))
        rows.append(row)
    i, j = len(words), len(reference)
    positions, word_errors, reference_errors = [0] * j, [True] * i, [True] * j
    while i or j:
        step = rows[i][j][1]
        i -= step != "insert"
        j -= step != "delete"
        if step == "insert":
            positions[j] = i - 1
        elif step == "substitute":
            positions[j] = i
            word_errors[i] = reference_errors[j] = words[i] != reference[j]
    return _Alignment(rows[-1][-1][0], positions, word_errors, reference_errors)
