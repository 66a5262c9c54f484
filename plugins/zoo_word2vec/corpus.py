"""`Corpus`: text as word IDs, with the counts and sampling that word2vec needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import torch
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
        counts = Counter(tokens)
        if PADDING in counts:
            raise ZooError(f"the word '{PADDING}' is reserved for padding")
        words = sorted((w for w, n in counts.items() if n >= min_count), key=lambda w: -counts[w])
        if not words:
            raise ZooError(
                f"the vocabulary is empty: none of {len(counts):,} words occurs at least "
                f"{min_count} times (min_count)"
            )
        index = {word: row for row, word in enumerate(words, 1)}
        ids = torch.from_numpy(np.fromiter(map(index.get, tokens, repeat(0)), np.int64))
        rows = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
        keep = ids > 0
        return cls(
            [PADDING, *words],
            torch.tensor([0, *(counts[word] for word in words)], dtype=torch.float64),
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
