"""NIST, computed with nltk."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from zoo.plugin import MissingExtra
from zoo_metrics.text_metric import CorpusMetric, count_ngrams, split_words


class NIST(CorpusMetric):
    r"""NIST: corpus n-gram precision weighted by information, with a brevity penalty.

    .. math:: \mathrm{NIST} = \sum_{n=1}^{N}
        \frac{\sum_{g \in \hat G_n \cap G_n} \log_2 \frac{\#(g_1 \ldots g_{n-1})}{\#(g)}}
        {|\hat G_n|} \cdot \exp\left(\beta \ln^2 \min\left(1, \frac{|\hat y|}{|y|}\right)\right)

    # counts n-grams in the references; beta makes the penalty 1/2 at two thirds of the reference
    length. Orders longer than every prediction add nothing. Texts are split at whitespace. Computed
    with nltk over the full corpus, with the best reference of each prediction and order. The method
    `reference` computes the formula.

    Paper: Doddington 2002, eqs. 2 and 3.

    Args:
        max_order: maximum n-gram order N.
        lowercase: compare in lower case.

    Shapes:
        N predictions, N lists of references -> {nist: at least 0}.
    """

    name: ClassVar[str] = "nist"
    paper: ClassVar[str] = (
        "Doddington 2002, Automatic Evaluation of Machine Translation Quality Using N-gram "
        "Co-Occurrence Statistics"
    )

    def __init__(
        self, *, max_order: Annotated[int, Field(ge=1, le=64)] = 5, lowercase: bool = False
    ) -> None:
        super().__init__()
        try:
            import nltk.translate.nist_score as library
        except ImportError:
            raise MissingExtra("metric 'nist'", library="nltk", extra="metrics") from None
        self.library = library
        self.max_order = max_order
        self.lowercase = lowercase

    def compute(self) -> dict[str, float]:
        hypotheses, targets = self._tokenize(*self.get_corpus())
        # nltk divides by the number of predicted n-grams and by the number of reference words.
        order = min(self.max_order, max(len(words) for words in hypotheses))
        if order == 0 or not any(words for texts in targets for words in texts):
            return {"nist": 0.0}
        return {"nist": float(self.library.corpus_nist(targets, hypotheses, n=order))}

    def signature(self) -> str:
        import nltk

        case = "lc" if self.lowercase else "mixed"
        return f"order:{self.max_order}|case:{case}|tok:spaces|nltk:{nltk.__version__}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        hypotheses, targets = self._tokenize(predictions, references)
        orders = range(1, min(self.max_order, max(map(len, hypotheses))) + 1)
        counts: Counter[tuple[str, ...]] = Counter()
        for words in (words for texts in targets for words in texts):
            counts[()] += len(words)
            for n in orders:
                counts += count_ngrams(words, n)

        def information(matches: Counter[tuple[str, ...]]) -> float:
            return sum(k * math.log2(counts[g[:-1]] / counts[g]) for g, k in matches.items())

        precisions, hypothesis_length, target_length = 0.0, 0, 0
        for n in orders:
            matched, total = 0.0, 0
            for words, texts in zip(hypotheses, targets, strict=True):
                ngrams = count_ngrams(words, n)
                candidates = [(information(ngrams & count_ngrams(t, n)), len(t)) for t in texts]
                best, length = max(candidates)
                matched, total = matched + best, total + ngrams.total()
                hypothesis_length += len(words)
                target_length += length
            precisions += matched / total
        if target_length == 0:
            return {"nist": 0.0}
        beta = math.log(0.5) / math.log(1.5) ** 2
        log_ratio = math.log(min(1.0, hypothesis_length / target_length))
        return {"nist": precisions * math.exp(beta * log_ratio**2)}

    def _tokenize(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> tuple[list[list[str]], list[list[list[str]]]]:
        return (
            [split_words(text, lowercase=self.lowercase) for text in predictions],
            [
                [split_words(text, lowercase=self.lowercase) for text in texts]
                for texts in references
            ],
        )
