"""CIDEr-D, as in the COCO caption evaluation."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from zoo_metrics.text_metric import CorpusMetric, count_ngrams, split_words

ORDERS = (1, 2, 3, 4)
Ngram = tuple[str, ...]


class CIDEr(CorpusMetric):
    r"""CIDEr-D: mean cosine similarity of TF-IDF weighted n-grams of captions and references.

    .. math:: \mathrm{CIDEr\text{-}D} = \frac{1}{N} \sum_i \frac{10}{4 K_i} \sum_{n=1}^{4} \sum_k
        e^{-\frac{(l(\hat y_i) - l(y_{ik}))^2}{2 \sigma^2}} \cdot
        \frac{\min(g^n(\hat y_i), g^n(y_{ik})) \cdot g^n(y_{ik})}
        {\lVert g^n(\hat y_i) \rVert \lVert g^n(y_{ik}) \rVert}

    g^n(y) has, for each n-gram, its count in y times ln N / max(1, df), where df of the N items
    have it in one of their references; l(y) is the number of bigrams in y. This is **CIDEr-D**,
    named CIDEr in pycocoevalcap. Texts are lower-cased and split at whitespace: tokenise captions
    first to compare with published values. A single caption scores 0, because df is N for every
    n-gram. Implemented here; the method `reference` uses dense count matrices in numpy.

    Paper: Vedantam et al. 2015, eq. 6.

    Args:
        sigma: standard deviation of the length penalty.

    Shapes:
        N predictions, N lists of references -> {cider: from 0 to 10}.
    """

    name: ClassVar[str] = "cider"
    paper: ClassVar[str] = (
        "Vedantam, Zitnick and Parikh 2015, CIDEr: Consensus-based Image Description Evaluation, "
        "arXiv:1411.5726"
    )

    def __init__(self, *, sigma: Annotated[float, Field(gt=0)] = 6.0) -> None:
        super().__init__()
        self.sigma = sigma

    def compute(self) -> dict[str, float]:
        predictions, references = self.get_corpus()
        N = len(predictions)
        reference_ngrams = [[_count_ngrams(text) for text in texts] for texts in references]
        # Number of items that have an n-gram in a reference.
        df = Counter(gram for texts in reference_ngrams for gram in set().union(*texts))
        total = 0.0
        for prediction, texts in zip(predictions, reference_ngrams, strict=True):
            hypothesis = _count_ngrams(prediction)
            total += sum(self._similarity(hypothesis, text, df, N) for text in texts) / len(texts)
        return {"cider": 10 * total / N}

    def _similarity(
        self,
        hypothesis: Mapping[Ngram, int],
        target: Mapping[Ngram, int],
        df: Mapping[Ngram, int],
        N: int,
    ) -> float:
        """Compute the mean clipped cosine over the orders, times the length penalty."""
        cosines = 0.0
        for n in ORDERS:
            g, r = (
                {w: count * math.log(N / max(1, df[w])) for w, count in text.items() if len(w) == n}
                for text in (hypothesis, target)
            )
            norms = math.hypot(*g.values()) * math.hypot(*r.values())
            if norms > 0:
                cosines += sum(min(x, r[w]) * r[w] for w, x in g.items() if w in r) / norms
        delta = _bigram_count(hypothesis) - _bigram_count(target)
        return math.exp(-(delta**2) / (2 * self.sigma**2)) * cosines / len(ORDERS)

    def signature(self) -> str:
        return f"cider-d|order:4|sigma:{self.sigma}|df:references|case:lc|tok:spaces|version:1"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        """Compute the value with a dense count matrix per order, one column per n-gram."""
        import numpy as np

        N = len(predictions)
        values = np.zeros((N, len(ORDERS)))
        for n in ORDERS:
            hypothesis = [_ngrams(text, n) for text in predictions]
            target = [[_ngrams(text, n) for text in texts] for texts in references]
            grams = sorted(
                {gram for texts in (hypothesis, *target) for text in texts for gram in text}
            )
            tables = [
                np.array([[text.count(gram) for gram in grams] for text in texts])  # [K, W]
                for texts in target
            ]
            df = np.sum([table.any(axis=0) for table in tables], axis=0)
            idf = np.log(N) - np.log(np.maximum(1, df))
            for i, text in enumerate(hypothesis):
                g = np.array([text.count(gram) for gram in grams]) * idf  # [W]
                r = tables[i] * idf
                norms = np.linalg.norm(g) * np.linalg.norm(r, axis=1)
                cosines = (np.minimum(g, r) * r).sum(axis=1) / np.where(norms > 0, norms, 1)
                bigrams = np.array([len(_ngrams(text, 2)) for text in references[i]])
                delta = len(_ngrams(predictions[i], 2)) - bigrams  # [K]
                values[i, n - 1] = (cosines * np.exp(-(delta**2) / (2 * self.sigma**2))).mean()
        return {"cider": 10 * float(values.mean())}


def _count_ngrams(text: str) -> Counter[Ngram]:
    return Counter(gram for n in ORDERS for gram in _ngrams(text, n))


def _ngrams(text: str, n: int) -> list[Ngram]:
    return list(count_ngrams(split_words(text, lowercase=True), n).elements())


def _bigram_count(grams: Mapping[Ngram, int]) -> int:
    """Return the number of bigrams, which the COCO evaluation uses as the length."""
    return sum(count for gram, count in grams.items() if len(gram) == 2)
