"""A back-off language model from an ARPA file."""

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
    """Log-probabilities and back-off weights of n-grams, natural logarithms.

    .. math:: p(w \\mid h) = p^*(hw) \\text{ if listed, else } b(h)\\, p(w \\mid h')

    where h' is h without its first word. A word that is not listed has the probability of <unk>,
    or none if there is no <unk> either.

    Paper: Katz 1987; the format of Doug Paul's ARPA MIT-LL tools.
    """

    order: int
    probabilities: dict[Ngram, float]
    backoffs: dict[Ngram, float]

    def logprob(self, word: str, history: Ngram) -> float:
        """log p(word | history), of which the last order - 1 words count."""
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
    """An ARPA model over labels, each of them a word: its number, or its name if names are given.

    A history begins with <s>; its end is </s>, or free where that is not listed.
    """

    def __init__(self, arpa: Arpa, names: Sequence[str] | None = None) -> None:
        self.arpa = arpa
        self.names = names
        self._row = cache(self._compute_row)

    def next_logprobs(
        self, histories: Sequence[tuple[int, ...]], vocab: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-probabilities of each label [N, V] and of the end [N] after N histories."""
        if self.names is not None and len(self.names) < vocab:
            raise ZooError(
                f"the language model has names for {len(self.names)} symbols, the frames {vocab}"
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
        ends = ("</s>",) in self.arpa.probabilities
        return np.array([*row, self.arpa.logprob("</s>", history) if ends else 0.0])


def read_arpa(path: str | Path) -> Arpa:
    """The model in a file, or ZooError with the line at fault."""
    lines = _read_lines(Path(path))
    counts = _parse_header(lines, path)
    probabilities: dict[Ngram, float] = {}
    backoffs: dict[Ngram, float] = {}
    found = dict.fromkeys(counts, 0)
    section = 1  # the header ends with its heading
    for number, line in lines:
        if line == "\\end\\":
            break
        heading = re.fullmatch(rf"\\({_COUNT})-grams:", line)
        if heading:
            section = int(heading[1])
            if section not in counts:
                raise _parse_error(path, number, f"{section}-grams are not counted in \\data\\")
            continue
        fields = line.split()
        if len(fields) not in (section + 1, section + 2):
            raise _parse_error(path, number, f"'{line[:40]}' is no {section}-gram")
        gram = tuple(fields[1 : section + 1])
        try:
            probabilities[gram] = _parse_log10(fields[0])
            if len(fields) == section + 2:
                backoffs[gram] = _parse_log10(fields[-1])
        except ValueError:
            raise _parse_error(path, number, f"'{line[:40]}' has no number in its place") from None
        found[section] += 1
    else:
        raise ZooError(f"{path} is cut short: it has no \\end\\")
    for n, count in counts.items():
        if found[n] != count:
            raise ZooError(f"{path} has {found[n]} {n}-grams, but says {count} in \\data\\")
    return Arpa(max(counts), probabilities, backoffs)


def _parse_header(lines: Iterator[tuple[int, str]], path: str | Path) -> dict[int, int]:
    """The counts under \\data\\, read up to the heading of the first section."""
    if not any(line == "\\data\\" for _, line in lines):
        raise ZooError(f"{path} is no ARPA file: it has no \\data\\")
    counts: dict[int, int] = {}
    for number, line in lines:
        counted = re.fullmatch(rf"ngram\s+({_COUNT})\s*=\s*({_COUNT}|0)", line)
        if counted:
            counts[int(counted[1])] = int(counted[2])
        elif line == "\\1-grams:" and 1 in counts:
            return counts
        else:
            raise _parse_error(path, number, f"'{line[:40]}' should be a count as 'ngram 1=20'")
    raise ZooError(f"{path} is cut short: it has no n-grams")


def _parse_log10(field: str) -> float:
    """A logarithm to base ten as a natural one; ValueError if it is none, as NaN is."""
    value = float(field) * _LN10
    if not value < math.inf:
        raise ValueError
    return value


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, the empty ones left out."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ZooError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise ZooError(f"{path} is not UTF-8 text, so no ARPA file") from None
    return ((n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip())


def _parse_error(path: str | Path, number: int, message: str) -> ZooError:
    return ZooError(f"{path}:{number}: {message}")
