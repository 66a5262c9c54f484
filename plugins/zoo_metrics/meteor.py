"""METEOR with exact words and stems, without synonyms."""

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from zoo.plugin import Metric, MissingExtra
from zoo_metrics.text_metric import no_texts_error, random_texts, validate_texts


class METEOR(Metric):
    r"""Precision and recall of words, aligned by form then by stem, less a share for disorder.

    .. math:: \mathrm{METEOR} =
        \left(1 - \gamma \left(\frac{c}{m}\right)^\beta\right)
        \frac{P R}{\alpha P + (1 - \alpha) R}

    m words are aligned, in c runs that are unbroken in both texts; P = m / |prediction| and
    R = m / |reference|. Each word, from the last to the first, takes the last free reference
    word of the same form; then of the same Porter stem. **Synonyms are off**, as they need the
    WordNet corpus; otherwise this is nltk's METEOR. The value is the mean of the predictions'
    values, each with its best reference. Words are what stands between spaces, in lower case.
    Paper: Banerjee and Lavie 2005; the parameters are from Lavie and Agarwal 2007, section 2.
    A prediction is a text; its reference is a list of one or more texts.

    Args:
        alpha: how much more recall counts than precision.
        beta: the shape of the penalty for disorder.
        gamma: the most that disorder costs.

    Shapes:
        N texts, N lists of texts -> {meteor: from 0 to 1}.
    """

    name: ClassVar[str] = "meteor"
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
        try:
            from nltk.stem.porter import PorterStemmer
        except ImportError:
            raise MissingExtra("metric 'meteor'", library="nltk", extra="metrics") from None
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.stem: Callable[[str], str] = PorterStemmer().stem
        self.total = 0.0
        self.count = 0

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for prediction, texts in validate_texts(self.name, predictions, references):
            hypothesis = prediction.lower().split()
            self.total += max(self._score(hypothesis, text.lower().split()) for text in texts)
            self.count += 1

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
        """Which word was said for which: positions in both texts, in the order of the first."""
        partner: dict[int, int] = {}
        for form in (str, self.stem):
            used = set(partner.values())
            free: dict[str, list[int]] = {}
            for j, word in enumerate(target):
                if j not in used:
                    free.setdefault(form(word), []).append(j)
            for i in reversed(range(len(hypothesis))):
                if i not in partner and free.get(form(hypothesis[i])):
                    partner[i] = free[form(hypothesis[i])].pop()
        return sorted(partner.items())

    def merge(self, other: Self) -> None:
        self.total += other.total
        self.count += other.count

    def compute(self) -> dict[str, float]:
        if self.count == 0:
            raise no_texts_error(self.name)
        return {"meteor": self.total / self.count}

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
        return {"meteor": sum(scores) / len(scores)}

    def example(self, count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
        predictions, references = random_texts(count, rng)
        stems = [[text.replace("dogs", "dog") for text in texts] for texts in references]
        return predictions, stems


class _NoSynonyms:
    """In WordNet's place, for nltk: no word has a synonym."""

    def synsets(self, word: str) -> list[Any]:
        return []
