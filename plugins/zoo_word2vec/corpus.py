"""Text as word ids: which words there are, how often, and which occurrences to learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from zoo import ZooError

PADDING = "<pad>"


@dataclass(frozen=True)
class Corpus:
    """Sentences of known words, one after the other.

    Shapes:
        words [V], the first stands for nothing, the others come by falling count; counts [V];
        ids [N], the words in order; sentences [N], the number of the sentence each is in.
    """

    words: Sequence[str]
    counts: Tensor
    ids: Tensor
    sentences: Tensor

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], *, min_count: int = 5) -> Corpus:
        """The corpus of tokenised sentences, without words rarer than min_count."""
        texts = []
        for sentence in sentences:
            if isinstance(sentence, str):
                raise ZooError(f"a sentence is a list of words, not a text as '{sentence[:40]}'")
            texts.append(list(sentence))
        counted = Counter(chain.from_iterable(texts))
        if PADDING in counted:
            raise ZooError(f"the word '{PADDING}' stands for nothing and cannot be in a text")
        kept = sorted((w for w, n in counted.items() if n >= min_count), key=lambda w: -counted[w])
        if not kept:
            raise ZooError(
                f"the vocabulary is empty: none of {len(counted):,} words comes "
                f"{min_count} times or more"
            )
        index = {word: row for row, word in enumerate(kept, 1)}
        ids = [[index[word] for word in text if word in index] for text in texts]
        lengths = torch.tensor([len(row) for row in ids])
        return cls(
            [PADDING, *kept],
            torch.tensor([0, *(counted[word] for word in kept)], dtype=torch.float64),
            torch.tensor(list(chain.from_iterable(ids))),
            torch.arange(len(ids)).repeat_interleave(lengths),
        )

    def subsample(self, sample: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """ids and sentences [M] after frequent words were thinned out; 0 keeps all.

        A word of frequency f stays with probability sqrt(t / f) + t / f, as the authors' program
        has it; Mikolov et al. 2013, section 2.3, print the first term only.
        """
        if not sample:
            return self.ids, self.sentences
        share = sample / (self.counts / self.counts.sum()).clamp(min=1e-12)
        drawn = torch.rand(len(self.ids), generator=generator, dtype=torch.float64)
        stays = drawn < (share.sqrt() + share)[self.ids]
        return self.ids[stays], self.sentences[stays]

    def noise(self) -> Tensor:
        """Cumulated probabilities [V] of drawn words: counts to the power 3/4."""
        powers = self.counts**0.75
        return powers.cumsum(0) / powers.sum()
