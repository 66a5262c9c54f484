"""chrF and chrF++, computed with sacrebleu."""

import string
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from zoo.plugin import MissingExtra
from zoo_metrics.sacrebleu_metric import SacrebleuMetric
from zoo_metrics.text_metric import count_ngrams

DEFAULT_BETA = 2


class ChrF(SacrebleuMetric):
    r"""chrF: F-score of character n-grams over a corpus, in percent.

    .. math:: \mathrm{chrF}_\beta = 100 \cdot (1 + \beta^2)
        \frac{\mathrm{chrP} \cdot \mathrm{chrR}}{\beta^2 \, \mathrm{chrP} + \mathrm{chrR}}

    chrP and chrR are n-gram precision and recall, averaged over the orders that occur. The defaults
    are chrF2; ``word_order=2`` is chrF++. Computed with sacrebleu over the full corpus, with the
    best reference of each prediction. The method `reference` computes the formula.

    Paper: Popović 2015, eq. 1; with words, Popović 2017.

    Args:
        char_order: maximum order of character n-grams.
        word_order: maximum order of word n-grams; 0 for none.
        beta: weight of recall relative to precision.
        lowercase: compare in lower case.
        whitespace: include whitespace in character n-grams.

    Shapes:
        N predictions, N lists of references -> {chrf: from 0 to 100}.
    """

    name: ClassVar[str] = "chrf"
    paper: ClassVar[str] = (
        "Popović 2015, chrF: character n-gram F-score for automatic MT evaluation"
    )

    def __init__(
        self,
        *,
        char_order: Annotated[int, Field(ge=1, le=64)] = 6,
        word_order: Annotated[int, Field(ge=0, le=64)] = 0,
        beta: Annotated[int, Field(ge=1)] = DEFAULT_BETA,
        lowercase: bool = False,
        whitespace: bool = False,
    ) -> None:
        super().__init__()
        try:
            from sacrebleu.metrics.chrf import CHRF
        except ImportError:
            raise MissingExtra("metric 'chrf'", library="sacrebleu", extra="metrics") from None
        self.char_order = char_order
        self.word_order = word_order
        self.beta = beta
        self.lowercase = lowercase
        self.whitespace = whitespace
        self.scorer = CHRF(
            char_order=char_order,
            word_order=word_order,
            beta=beta,
            lowercase=lowercase,
            whitespace=whitespace,
        )
        if beta != DEFAULT_BETA:
            self.signature_prefix = f"beta:{beta}|"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        totals = [(0, 0, 0)] * (self.char_order + self.word_order)
        for prediction, texts in zip(predictions, references, strict=True):
            ngrams = self._ngrams(prediction)
            per_reference = [
                [
                    (p.total() if r else 0, r.total(), (p & r).total())
                    for p, r in zip(ngrams, self._ngrams(text), strict=True)
                ]
                for text in texts
            ]
            best = max(per_reference, key=self._f_score)
            totals = [
                (p + dp, r + dr, m + dm)
                for (p, r, m), (dp, dr, dm) in zip(totals, best, strict=True)
            ]
        return {"chrf": 100 * self._f_score(totals)}

    def _ngrams(self, text: str) -> list[Counter[tuple[str, ...]]]:
        """Count the n-grams of each order, characters first."""
        text = text.lower() if self.lowercase else text
        characters = text if self.whitespace else "".join(text.split())
        words = [part for word in text.split() for part in _split_punctuation(word)]
        return [
            *(count_ngrams(characters, n + 1) for n in range(self.char_order)),
            *(count_ngrams(words, n + 1) for n in range(self.word_order)),
        ]

    def _f_score(self, counts: Sequence[tuple[int, int, int]]) -> float:
        """Compute the F-score from the n-grams predicted, expected and matched per order."""
        rates = [(m / p, m / r) for p, r, m in counts if p and r]
        precision, recall = (
            (sum(values) for values in zip(*rates, strict=True)) if rates else (0, 0)
        )
        if not precision:
            return 0.0
        mean_precision, mean_recall = precision / len(rates), recall / len(rates)
        weight = self.beta**2
        return (1 + weight) * mean_precision * mean_recall / (weight * mean_precision + mean_recall)


def _split_punctuation(word: str) -> list[str]:
    """Split off one trailing, else one leading, punctuation mark."""
    if len(word) > 1 and word[-1] in string.punctuation:
        return [word[:-1], word[-1]]
    if len(word) > 1 and word[0] in string.punctuation:
        return [word[0], word[1:]]
    return [word]
