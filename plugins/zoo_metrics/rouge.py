"""ROUGE-1, ROUGE-2 and ROUGE-L, by rouge-score."""

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, ClassVar, Literal, Self

from zoo import ZooError
from zoo.plugin import MissingExtra
from zoo_metrics.text_metric import TextMetric, no_texts_error, validate_texts

# The names of rouge-score, and those of the values.
TYPES = {"rouge1": "rouge-1", "rouge2": "rouge-2", "rougeL": "rouge-l"}


class ROUGE(TextMetric):
    r"""Overlap of predictions with references in words, word pairs and common subsequences.

    .. math:: F = \frac{2PR}{P + R}, \quad
        P_n = \frac{|\hat G_n \cap G_n|}{|\hat G_n|}, \quad R_n = \frac{|\hat G_n \cap G_n|}{|G_n|}
        , \quad P_L = \frac{\mathrm{LCS}(\hat y, y)}{|\hat y|}, \quad
        R_L = \frac{\mathrm{LCS}(\hat y, y)}{|y|}

    G_n are the n-grams of a text. Each value is the mean of the predictions' F, which is that
    of the best reference. Paper: Lin 2004, sections 2 and 3.1; computed by rouge-score.
    A prediction is a text; its reference is a list of one or more texts.

    Args:
        tokenize: ``ascii`` is rouge-score's own, which sees nothing but the letters a to z and
            digits, so that a text in another script is empty; ``words`` takes words of any
            script. Both lower the case.
        stem: cut words to their stems first, as Porter does; English only, with ``ascii``.

    Shapes:
        N texts, N lists of texts -> {rouge-1, rouge-2, rouge-l: from 0 to 1}.
    """

    name: ClassVar[str] = "rouge"
    paper: ClassVar[str] = "Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries"

    def __init__(
        self, *, tokenize: Literal["ascii", "words"] = "ascii", stem: bool = False
    ) -> None:
        try:
            from rouge_score.rouge_scorer import RougeScorer
        except ImportError:
            raise MissingExtra("metric 'rouge'", library="rouge-score", extra="metrics") from None
        if stem and tokenize == "words":
            raise ZooError("rouge stems English only: take tokenize 'ascii' or leave stem out")
        self.tokenize = tokenize
        self.stem = stem
        self.scorer: Any = RougeScorer(
            list(TYPES),
            use_stemmer=stem,
            tokenizer=_UnicodeTokenizer() if tokenize == "words" else None,
        )
        self.totals = dict.fromkeys(TYPES, 0.0)
        self.count = 0

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for prediction, texts in validate_texts(self.name, predictions, references):
            for key, score in self.scorer.score_multi(texts, prediction).items():
                self.totals[key] += score.fmeasure
            self.count += 1

    def merge(self, other: Self) -> None:
        for key, total in other.totals.items():
            self.totals[key] += total
        self.count += other.count

    def compute(self) -> dict[str, float]:
        if self.count == 0:
            raise no_texts_error(self.name)
        return {TYPES[key]: total / self.count for key, total in self.totals.items()}

    def signature(self) -> str:
        stem = "porter" if self.stem else "no"
        library = f"rouge-score:{version('rouge-score')}"
        return f"f1|refs:best|mean:sentences|case:lc|tok:{self.tokenize}|stem:{stem}|{library}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        from rouge_score.rouge_scorer import RougeScorer

        words = _UnicodeTokenizer() if self.tokenize == "words" else None
        values = {}
        for key, name in TYPES.items():
            scorer = RougeScorer([key], use_stemmer=self.stem, tokenizer=words)
            best = [
                max(scorer.score(text, prediction)[key].fmeasure for text in texts)
                for prediction, texts in zip(predictions, references, strict=True)
            ]
            values[name] = sum(best) / len(best)
        return values


class _UnicodeTokenizer:
    """Lower-case words of any script, in the form that rouge-score takes."""

    def tokenize(self, text: str) -> list[str]:
        return re.findall(r"\w+", text.lower())
