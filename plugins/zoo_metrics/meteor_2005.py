"""METEOR of 2005, with exact words and stems, without synonyms."""

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from pydantic import Field

from zoo.plugin import MissingExtra
from zoo_metrics.mean_metric import MeanMetric
from zoo_metrics.text_metric import random_texts, split_words


class METEOR2005(MeanMetric):
    r"""METEOR of 2005, as in nltk, without synonyms: F-score of aligned words, times a penalty.

    .. math:: \mathrm{METEOR} =
        \left(1 - \gamma \left(\frac{c}{m}\right)^\beta\right)
        \frac{P R}{\alpha P + (1 - \alpha) R}

    m words are aligned in c chunks that are contiguous in both texts; P = m / |prediction| and
    R = m / |reference|. Each word, from the last to the first, is aligned with the last free
    reference word of the same form, then of the same Porter stem. **Synonyms are not used**,
    because they need the WordNet corpus. The value is the mean over the predictions, each with its
    best reference. Texts are lower-cased and split at whitespace. Implemented here; the reference
    computation is that of nltk, without synonyms. Papers on captioning report `meteor-1.5`.

    Paper: Banerjee and Lavie 2005; parameters of Lavie and Agarwal 2007, section 2.

    Args:
        alpha: weight of recall relative to precision.
        beta: exponent of the fragmentation penalty.
        gamma: maximum fragmentation penalty.

    Shapes:
        N predictions, N lists of references -> {meteor-2005: from 0 to 1}.
    """

    name: ClassVar[str] = "meteor-2005"
    paper: ClassVar[str] = (
        "Banerjee and Lavie 2005, METEOR: An Automatic Metric for MT Evaluation with Improved "
        "Correlation with Human Judgments"
    )

    def __init__(
        self,
        *,
        alpha: Annotated[float, Field(ge=0, le=1)] = 0.9,
        beta: Annotated[float, Field(ge=0)] = 3.0,
        gamma: Annotated[float, Field(ge=0, le=1)] = 0.5,
    ) -> None:
        super().__init__()
        try:
            from nltk.stem.porter import PorterStemmer
        except ImportError:
            raise MissingExtra("metric 'meteor-2005'", library="nltk", extra="metrics") from None
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.stem: Callable[[str], str] = PorterStemmer().stem

    def score(self, prediction: str, texts: Sequence[str]) -> dict[str, float]:
        hypothesis, *targets = (split_words(text, lowercase=True) for text in (prediction, *texts))
        return {"meteor-2005": max(self._score(hypothesis, target) for target in targets)}

    def _score(self, hypothesis: list[str], target: list[str]) -> float:
        matches = self._align(hypothesis, target)
        m = len(matches)
        if m == 0:
            return 0.0
        P, R = m / len(hypothesis), m / len(target)
        c = 1 + sum((i + 1, j + 1) != after for (i, j), after in pairwise(matches))
        penalty: float = self.gamma * (c / m) ** self.beta
        return (1 - penalty) * P * R / (self.alpha * P + (1 - self.alpha) * R)

    def _align(self, hypothesis: list[str], target: list[str]) -> list[tuple[int, int]]:
        """Return the aligned positions in both texts, in the order of the hypothesis."""
        matches: dict[int, int] = {}
        for normalise in (str, self.stem):
            used = set(matches.values())
            free: dict[str, list[int]] = {}
            for j, word in enumerate(target):
                if j not in used:
                    free.setdefault(normalise(word), []).append(j)
            for i in reversed(range(len(hypothesis))):
                if i not in matches and free.get(normalise(hypothesis[i])):
                    matches[i] = free[normalise(hypothesis[i])].pop()
        return sorted(matches.items())

    def signature(self) -> str:
        import nltk

        weights = f"alpha:{self.alpha}|beta:{self.beta}|gamma:{self.gamma}"
        stages = f"stages:exact,porter|synonyms:off|nltk:{nltk.__version__}"
        return f"refs:best|mean:sentences|{weights}|case:lc|tok:spaces|{stages}|version:1"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        from nltk.translate.meteor_score import meteor_score

        scores = [
            meteor_score(
                [text.split() for text in texts],
                prediction.split(),
                wordnet=_NoSynonyms(),
                alpha=self.alpha,
                beta=self.beta,
                gamma=self.gamma,
            )
            for prediction, texts in zip(predictions, references, strict=True)
        ]
        return {"meteor-2005": sum(scores) / len(scores)}

    def example(self, count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
        predictions, references = random_texts(count, rng)
        stems = [[text.replace("dogs", "dog") for text in texts] for texts in references]
        return predictions, stems


class _NoSynonyms:
    """Replacement for WordNet in nltk that has no synonyms."""

    def synsets(self, word: str) -> list[Any]:
        return []
