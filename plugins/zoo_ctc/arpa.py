"""Back-off language models in ARPA files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zoo import ZooError

Ngram = tuple[str, ...]
_LN10 = math.log(10)
_COUNT = r"[1-9]\d{,17}"


@dataclass(frozen=True)
class Arpa:
    """Back-off n-gram model: natural logarithms of probabilities and back-off weights.

    .. math:: p(w \\mid h) = p^*(hw) \\text{ if listed, else } b(h)\\, p(w \\mid h')

    where h' is h without its first word. A word that is not listed has the probability of <unk>,
    or 0 if <unk> is not listed.

    Paper: Katz 1987; the file format of Doug Paul's ARPA MIT-LL tools.
    """

    order: int
    probabilities: dict[Ngram, float]
    backoffs: dict[Ngram, float]

    def logprob(self, word: str, history: Ngram) -> float:
        """Compute log p(word | history) from the last order - 1 words of the history."""
        recent = history[max(len(history) - self.order + 1, 0) :]
        *known, word = (w if (w,) in self.probabilities else "<unk>" for w in (*recent, word))
        context: Ngram = tuple(known)
        penalty = 0.0
        while (*context, word) not in self.probabilities:
            if not context:
                return -math.inf
            penalty += self.backoffs.get(context, 0.0)
            context = context[1:]
        return penalty + self.probabilities[*context, word]


class ArpaLanguageModel:
    """ARPA model over labels; the word of a label is its ID, or its entry in ``names``.

    A history starts with <s>. The end is </s>, with log-probability 0 if </s> is not listed.
    """

    def __init__(self, arpa: Arpa, names: Sequence[str] | None = None) -> None:
        self.arpa = arpa
        self.names = names
        self._row = cache(self._compute_row)

    def next_logprobs(
        self, histories: Sequence[tuple[int, ...]], vocab: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log-probabilities of each label [N, V] and of the end [N] after N histories."""
        if self.names is not None and len(self.names) < vocab:
            raise ZooError(
                f"symbols lists {len(self.names)} words, but the frames have {vocab} labels"
            )
        rows = [self._row(self._context_words(history), vocab) for history in histories]
        return np.stack([row[:-1] for row in rows]), np.array([row[-1] for row in rows])

    def _context_words(self, history: tuple[int, ...]) -> Ngram:
        words = ("<s>", *(self._label_name(label) for label in history))
        return words[max(len(words) - self.arpa.order + 1, 0) :]

    def _label_name(self, label: int) -> str:
        return str(label) if self.names is None else self.names[label]

    def _compute_row(self, history: Ngram, vocab: int) -> NDArray[np.float64]:
        row = [self.arpa.logprob(self._label_name(label), history) for label in range(vocab)]
        has_end = ("</s>",) in self.arpa.probabilities
        return np.array([*row, self.arpa.logprob("</s>", history) if has_end else 0.0])


def read_arpa(path: str | Path) -> Arpa:
    """Read an ARPA file; raise ZooError with the line number of an invalid line."""
    lines = _read_lines(Path(path))
    counts = _parse_header(lines, path)
    probabilities: dict[Ngram, float] = {}
    backoffs: dict[Ngram, float] = {}
    num_read = dict.fromkeys(counts, 0)
    section = 1  # the header ends with its heading
    for number, line in lines:
        if line == "\\end\\":
            break
        heading = re.fullmatch(rf"\\({_COUNT})-grams:", line)
        if heading:
            section = int(heading[1])
            if section not in counts:
                raise _parse_error(path, number, f"\\data\\ has no count of {section}-grams")
            continue
        fields = line.split()
        if len(fields) not in (section + 1, section + 2):
            raise _parse_error(
                path,
                number,
                f"'{line[:40]}' is not a {section}-gram: expected a log-probability, {section} "
                "words and an optional back-off weight",
            )
        gram = tuple(fields[1 : section + 1])
        try:
            probabilities[gram] = _parse_log10(fields[0])
            if len(fields) == section + 2:
                backoffs[gram] = _parse_log10(fields[-1])
        except ValueError:
            raise _parse_error(
                path, number, f"'{line[:40]}' does not have a number where one is expected"
            ) from None
        num_read[section] += 1
    else:
        raise ZooError(f"{path} is incomplete: it has no \\end\\")
    for n, count in counts.items():
        if num_read[n] != count:
            raise ZooError(f"{path} has {num_read[n]} {n}-grams, but \\data\\ lists {count}")
    return Arpa(max(counts), probabilities, backoffs)


def _parse_header(lines: Iterator[tuple[int, str]], path: str | Path) -> dict[int, int]:
    """Read the counts under \\data\\, up to the heading of the first section."""
    if not any(line == "\\data\\" for _, line in lines):
        raise ZooError(f"{path} is not an ARPA file: it has no \\data\\")
    counts: dict[int, int] = {}
    for number, line in lines:
        match = re.fullmatch(rf"ngram\s+({_COUNT})\s*=\s*({_COUNT}|0)", line)
        if match:
            counts[int(match[1])] = int(match[2])
        elif line == "\\1-grams:" and 1 in counts:
            return counts
        else:
            raise _parse_error(
                path, number, f"'{line[:40]}' is not a count; expected a line like 'ngram 1=20'"
            )
    raise ZooError(f"{path} is incomplete: it has no n-grams")


def _parse_log10(field: str) -> float:
    """Convert a base-10 logarithm to a natural one; raise ValueError if it is NaN or inf."""
    value = float(field) * _LN10
    if not value < math.inf:
        raise ValueError
    return value


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the non-empty lines with their numbers."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ZooError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise ZooError(f"{path} is not an ARPA file: it is not UTF-8 text") from None
    return ((n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip())


def _parse_error(path: str | Path, number: int, message: str) -> ZooError:
    return ZooError(f"{path}:{number}: {message}")
