"""ROUGE-1, ROUGE-2 and ROUGE-L, by rouge-score."""

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, ClassVar, Literal

from zoo import ZooError
from zoo.plugin import MissingExtra
from zoo_metrics.mean_metric import MeanMetric
from zoo_metrics.text_metric import count_ngrams, lcs_length

# Names in rouge-score, and names of the values.
TYPES = {"rouge1": "rouge-1", "rouge2": "rouge-2", "rougeL": "rouge-l"}


class ROUGEGoogle(MeanMetric):
    r"""ROUGE-1, ROUGE-2 and ROUGE-L of Google's rouge-score: F1 of n-grams and subsequences.

    .. math:: F = \frac{2PR}{P + R}, \quad
        P_n = \frac{|\hat G_n \cap G_n|}{|\hat G_n|}, \quad R_n = \frac{|\hat G_n \cap G_n|}{|G_n|}
        , \quad P_L = \frac{\mathrm{LCS}(\hat y, y)}{|\hat y|}, \quad
        R_L = \frac{\mathrm{LCS}(\hat y, y)}{|y|}

    G_n are the n-grams of a text. Each value is the mean over the predictions of F with the best
    reference. Computed with rouge-score. The method `reference` computes the formula. Papers on
    captioning report `rouge-coco`.

    Paper: Lin 2004, sections 2 and 3.1.

    Args:
        tokenize: ``ascii`` is the tokeniser of rouge-score, which drops all characters except a to
            z and digits; ``words`` keeps words of any script. Both convert to lower case.
        stem: apply the Porter stemmer; English only, with ``ascii``.

    Shapes:
        N predictions, N lists of references -> {rouge-1, rouge-2, rouge-l: from 0 to 1}.
    """

    name: ClassVar[str] = "rouge-google"
    paper: ClassVar[str] = "Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries"

    def __init__(
        self, *, tokenize: Literal["ascii", "words"] = "ascii", stem: bool = False
    ) -> None:
        super().__init__()
        try:
            from rouge_score.rouge_scorer import RougeScorer
        except ImportError:
            raise MissingExtra(
                "metric 'rouge-google'", library="rouge-score", extra="metrics"
            ) from None
        if stem and tokenize == "words":
            raise ZooError(
                "rouge-google: stem supports English only; use tokenize 'ascii', or set stem to "
                "false"
            )
        self.tokenize = tokenize
        self.stem = stem
        self.scorer: Any = RougeScorer(
            list(TYPES),
            use_stemmer=stem,
            tokenizer=_UnicodeTokenizer() if tokenize == "words" else None,
        )

    def score(self, prediction: str, texts: Sequence[str]) -> dict[str, float]:
        scores = self.scorer.score_multi(texts, prediction)
        return {TYPES[key]: score.fmeasure for key, score in scores.items()}

    def signature(self) -> str:
        stem = "porter" if self.stem else "no"
        library = f"rouge-score:{version('rouge-score')}"
        return f"f1|refs:best|mean:sentences|case:lc|tok:{self.tokenize}|stem:{stem}|{library}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        totals = dict.fromkeys(TYPES.values(), 0.0)
        for prediction, texts in zip(predictions, references, strict=True):
            tokens, targets = self._tokens(prediction), [self._tokens(text) for text in texts]
            scores = [
                {
                    "rouge-1": _ngram_f1(tokens, target, 1),
                    "rouge-2": _ngram_f1(tokens, target, 2),
                    "rouge-l": _f1(lcs_length(tokens, target), len(tokens), len(target)),
                }
                for target in targets
            ]
            for name in totals:
                totals[name] += max(score[name] for score in scores)
        return {name: total / len(predictions) for name, total in totals.items()}

    def _tokens(self, text: str) -> list[str]:
        if self.tokenize == "words":
            return _UnicodeTokenizer().tokenize(text)
        from nltk.stem.porter import PorterStemmer

        tokens = re.findall(r"[a-z0-9]+", text.lower())
        stem = PorterStemmer().stem
        return [stem(token) if self.stem and len(token) > 3 else token for token in tokens]


class _UnicodeTokenizer:
    """Tokeniser of lower-case words of any script, with the interface of rouge-score."""

    def tokenize(self, text: str) -> list[str]:
        return re.findall(r"\w+", text.lower())


def _ngram_f1(tokens: list[str], target: list[str], n: int) -> float:
    predicted, expected = count_ngrams(tokens, n), count_ngrams(target, n)
    return _f1((predicted & expected).total(), predicted.total(), expected.total())


def _f1(matches: int, predicted: int, expected: int) -> float:
    if matches == 0:
        return 0.0
    precision, recall = matches / predicted, matches / expected
    return 2 * precision * recall / (precision + recall)
