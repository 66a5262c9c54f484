"""Program 'count-model': the perplexity of an n-gram model with Kneser-Ney smoothing."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from zoo import DataError
from zoo.plugin import Part, Program, ProgramRun, TextLines

IDs = NDArray[np.int64]


class CountModelProgram(Program, Part):
    r"""Perplexity of an n-gram model with interpolated Kneser-Ney smoothing, from text files.

    .. math:: p(w \mid h) = \frac{\max(c(hw) - D, 0) + D\, T(h)\, p(w \mid h')}{c(h)}

    as in the decoder `ngram`, whose order is limited by the vocabulary; here an n-gram is coded by
    its context and its last word. Words are separated by spaces, ``<eos>`` follows every line, and
    the context continues over lines. The vocabulary is that of the training file; other words are
    ``<unk>``.

    Paper: Kneser and Ney 1995; Chen and Goodman 1998, section 2.7.

    Args:
        train: text file that is counted.
        validation: text file.
        test: text file.
        order: length of the n-grams, including the predicted word.

    Shapes:
        text files -> {validation/perplexity, test/perplexity}.
    """

    name: ClassVar[str] = "count-model"
    paper: ClassVar[str] = "Kneser and Ney 1995, Improved backing-off for M-gram language modeling"
    test_params: ClassVar[Mapping[str, Any]] = {
        "train": "train.txt", "validation": "val.txt", "test": "test.txt"
    }  # fmt: skip

    def __init__(
        self,
        *,
        train: str,
        validation: str,
        test: str,
        order: Annotated[int, Field(ge=1, le=8)] = 5,
    ) -> None:
        self.train = train
        self.validation = validation
        self.test = test
        self.order = order

    def run(self, run: ProgramRun) -> Mapping[str, float]:
        words: dict[str, int] = {"<unk>": 0}
        stream = [words.setdefault(word, len(words)) for word in _read_words(self.train)]
        model = KneserNey(np.array(stream), self.order, len(words))
        values = {}
        for part, file in (("validation", self.validation), ("test", self.test)):
            ids = np.array([words.get(word, 0) for word in _read_words(file)])
            values[f"{part}/perplexity"] = math.exp(-float(model.logprobs(ids).mean()))
        return values


def _read_words(file: str) -> Iterator[str]:
    lines = TextLines(file)
    if not len(lines):
        raise DataError("the file has no text", str(lines.path))
    for line in lines:
        yield from line.split()
        yield "<eos>"


class _Level:
    """The n-grams of one length: a code is the index of the context times V, plus the last word."""

    def __init__(self, contexts: IDs, last: IDs, vocab: int) -> None:
        self.vocab = vocab
        self.codes, self.counts = np.unique(contexts * vocab + last, return_counts=True)

    def find(self, contexts: IDs, last: IDs) -> IDs:
        """Return the indices of n-grams, -1 for those that were not counted."""
        codes = contexts * self.vocab + last
        index = np.searchsorted(self.codes, codes).clip(max=len(self.codes) - 1)
        return np.where((self.codes[index] == codes) & (contexts >= 0), index, -1)


class KneserNey:
    """Interpolated Kneser-Ney probabilities of a stream of word IDs.

    Args:
        stream: the words that are counted [N].
        order: length of the n-grams.
        vocab: number of words, V.
    """

    def __init__(self, stream: IDs, order: int, vocab: int) -> None:
        self.order = order
        self.vocab = vocab
        self.levels: list[_Level] = []
        for _ in range(order):
            contexts = self._contexts(stream, len(self.levels))
            valid = contexts >= 0
            self.levels.append(_Level(contexts[valid], stream[valid], vocab))
        self._set_counts(stream)

    def _contexts(self, stream: IDs, length: int) -> IDs:
        """Return, for each word, the index of the context of this length before it; -1 if it was
        not counted or is not complete."""
        index = np.zeros(len(stream), np.int64)
        for level in range(length):
            word = np.roll(stream, length - level)
            index = self.levels[level].find(index, word)
        index[:length] = -1
        return index

    def _set_counts(self, stream: IDs) -> None:
        """Set counts, of preceding words for all but the longest n-grams, and the discounts."""
        self.kept, self.totals, self.distinct, self.discounts = [], [], [], []
        for n, level in enumerate(self.levels):
            counts = level.counts
            if n + 1 < self.order:
                counts = self._preceding(stream, n)
            contexts = level.codes // self.vocab
            size = 1 if n == 0 else len(self.levels[n - 1].codes)
            once, twice = int((counts == 1).sum()), int((counts == 2).sum())
            self.discounts.append(once / (once + 2 * twice) if once else 0.5)
            self.kept.append(counts)
            self.totals.append(np.bincount(contexts, counts, size))
            self.distinct.append(np.bincount(contexts[counts > 0], minlength=size))

    def _preceding(self, stream: IDs, n: int) -> IDs:
        """Return the number of distinct words before each n-gram of length n + 1."""
        grams = self.levels[n].find(self._contexts(stream, n), stream)
        before = np.roll(stream, n + 1)
        valid = np.arange(len(stream)) > n
        pairs = np.unique(grams[valid] * self.vocab + before[valid])
        return np.bincount(pairs // self.vocab, minlength=len(self.levels[n].codes))

    def logprobs(self, stream: IDs) -> NDArray[np.float64]:
        """Return the log-probability of each word of a stream [N]."""
        p = np.full(len(stream), 1 / self.vocab)
        for n, level in enumerate(self.levels):
            contexts = self._contexts(stream, n)
            known = contexts >= 0
            total = np.where(known, self.totals[n][contexts], 0)
            found = level.find(contexts, stream)
            counts = np.where(found >= 0, self.kept[n][found], 0)
            discount, distinct = self.discounts[n], self.distinct[n][contexts]
            smoothed = np.maximum(counts - discount, 0) + discount * distinct * p
            p = np.where(total > 0, smoothed / np.maximum(total, 1), p)
        logs: NDArray[np.float64] = np.log(p)
        return logs
