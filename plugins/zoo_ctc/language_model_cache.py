"""Cache of a language model's scores by prefix, for CTC prefix beam search.

Notation: W prefixes in the beam, V vocabulary including the blank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zoo_ctc.language_models import LabelLanguageModel

Labels = tuple[int, ...]
FloatArray = NDArray[np.float64]


class LanguageModelCache:
    """Scores of a language model times ``weight``, with ``length_bonus`` for each label."""

    def __init__(
        self, lm: LabelLanguageModel, vocab: int, weight: float, length_bonus: float
    ) -> None:
        self.lm = lm
        self.vocab = vocab
        self.weight = weight
        self.length_bonus = length_bonus
        self.cache: dict[Labels, tuple[FloatArray, float]] = {}

    def extension_scores(self, prefixes: list[Labels]) -> FloatArray:
        """Return the score of extending each prefix by each label, [W, V]."""
        self._fill(prefixes)
        rows = np.stack([self.cache[prefix][0] for prefix in prefixes])
        return self.weight * rows + self.length_bonus

    def end_scores(self, prefixes: list[Labels]) -> FloatArray:
        """Return the score of ending after each prefix, [W]."""
        self._fill(prefixes)
        return self.weight * np.array([self.cache[prefix][1] for prefix in prefixes])

    def _fill(self, prefixes: list[Labels]) -> None:
        new = [prefix for prefix in prefixes if prefix not in self.cache]
        if new:
            rows, end_scores = self.lm.next_logprobs(new, self.vocab)
            self.cache.update(zip(new, zip(rows, end_scores.tolist(), strict=True), strict=True))
