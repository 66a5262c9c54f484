"""Interpolated Kneser-Ney smoothing: discounts, interpolation, and the counts of a stream of words.

Paper: Kneser and Ney 1995; Chen and Goodman 1998, section 2.7.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

IDs = NDArray[np.int64]
FALLBACK_DISCOUNT = 0.5


def absolute_discount(counts: Tensor | IDs) -> float:
    r"""Return the discount of the n-grams of one length, from their counts.

    .. math:: D = n_1 / (n_1 + 2 n_2)

    where n_i n-grams have the count i. If n_1 is 0 the discount would be 0, and unseen words
    impossible: it is 1/2.
    """
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return once / (once + 2 * twice) if once else FALLBACK_DISCOUNT


def interpolate(counts: Any, total: Any, distinct: Any, discount: Any, shorter: Any) -> Any:
    r"""Return the probabilities of words after a context, as arrays or tensors.

    .. math:: p(w \mid h) = \frac{\max(c(hw) - D, 0) + D\, T(h)\, p(w \mid h')}{c(h)}

    Args:
        counts: c(hw).
        total: c(h); the result is not valid where it is 0.
        distinct: T(h), the number of distinct words after the context.
        discount: D.
        shorter: p(w | h'), after the context without its first word.
    """
    return ((counts - discount).clip(min=0) + discount * distinct * shorter) / total.clip(min=1)


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
            self.discounts.append(absolute_discount(counts))
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
            p = np.where(total > 0, interpolate(counts, total, distinct, discount, p), p)
        logs: NDArray[np.float64] = np.log(p)
        return logs
