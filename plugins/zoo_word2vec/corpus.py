"""`Corpus`: text as word IDs, with the counts and sampling that word2vec needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import ZooError

PADDING = "<pad>"


@dataclass(frozen=True)
class Corpus:
    """Tokenised sentences as word IDs.

    Shapes:
        words [V], the padding token first, then words by decreasing count; counts [V];
        ids [N], the words of all sentences; sentences [N], the index of each word's sentence.
    """

    words: Sequence[str]
    counts: Tensor
    ids: Tensor
    sentences: Tensor

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sequence[str]], *, min_count: int = 5) -> Corpus:
        """Return the corpus of tokenised sentences, without words rarer than min_count."""
        tokens: list[str] = []
        lengths = []
        for sentence in sentences:
            if isinstance(sentence, str):
                raise ZooError(
                    f"a sentence must be a list of words, but got the string '{sentence[:40]}'"
                )
            tokens.extend(sentence)
            lengths.append(len(sentence))
        index: defaultdict[str, int] = defaultdict()
        index.default_factory = index.__len__  # words in the order of their first occurrence
        ids = torch.from_numpy(np.fromiter(map(index.__getitem__, tokens), np.int64, len(tokens)))
        if PADDING in index:
            raise ZooError(f"the word '{PADDING}' is reserved for padding")
        counts = ids.bincount(minlength=len(index))
        order = counts.argsort(descending=True, stable=True)
        order = order[counts[order] >= min_count]
        if not len(order):
            raise ZooError(
                f"the vocabulary is empty: none of {len(index):,} words occurs at least "
                f"{min_count} times (min_count)"
            )
        found = list(index)
        new_ids = torch.zeros(len(index), dtype=torch.long)
        new_ids[order] = torch.arange(1, len(order) + 1)
        ids = new_ids[ids]
        rows = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
        keep = ids > 0
        return cls(
            [PADDING, *(found[number] for number in order.tolist())],
            F.pad(counts[order], (1, 0)).double(),
            ids[keep],
            rows[keep],
        )

    def subsample(self, sample: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return ids and sentences [M] with frequent words randomly removed; 0 removes none.

        A word of frequency f is kept with probability sqrt(t / f) + t / f, as in the authors'
        program; Mikolov et al. 2013, section 2.3, give the first term only.
        """
        if not sample:
            return self.ids, self.sentences
        ratio = sample / (self.counts / self.counts.sum()).clamp(min=1e-12)
        uniform = torch.rand(len(self.ids), generator=generator, dtype=torch.float64)
        keep = uniform < (ratio.sqrt() + ratio)[self.ids]
        return self.ids[keep], self.sentences[keep]

    def noise_cdf(self) -> Tensor:
        """Return the cumulative distribution [V] of noise words: counts to the power 3/4."""
        powers = self.counts**0.75
        return powers.cumsum(0) / powers.sum()
