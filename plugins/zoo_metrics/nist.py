"""NIST, as in mteval."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from zoo_metrics.text_metric import CorpusMetric, count_ngrams, split_words

BETA = math.log(0.5) / math.log(1.5) ** 2


class NIST(CorpusMetric):
    r"""NIST: corpus n-gram precision weighted by information, with a brevity penalty.

    .. math:: \mathrm{NIST} = \sum_{n=1}^{N}
        \frac{\sum_{g \in \hat G_n \cap G_n} \log_2 \frac{\#(g_1 \ldots g_{n-1})}{\#(g)}}
        {|\hat G_n|} \cdot \exp\left(\beta \ln^2 \min\left(1, \frac{|\hat y|}{|y|}\right)\right)

    # counts n-grams in all references; beta makes the penalty 1/2 at two thirds of the reference
    length. An n-gram of a prediction matches as often as it occurs in the reference that has it
    most, and the reference length is the mean over the references, as in mteval-v13a. Orders longer
    than every prediction add nothing. Texts are split at whitespace. Implemented here; the method
    `reference` computes the value with lists.

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
    version: ClassVar[int] = 2

    def __init__(
        self, *, max_order: Annotated[int, Field(ge=1, le=64)] = 5, lowercase: bool = False
    ) -> None:
        super().__init__()
        self.max_order = max_order
        self.lowercase = lowercase

    def compute(self) -> dict[str, float]:
        hypotheses, targets = self._tokenize(*self.get_corpus())
        orders = range(1, self.max_order + 1)
        counts: Counter[tuple[str, ...]] = Counter()  # over all references
        for words in (words for texts in targets for words in texts):
            counts[()] += len(words)
            for n in orders:
                counts.update(count_ngrams(words, n))
        matched, total = dict.fromkeys(orders, 0.0), dict.fromkeys(orders, 0)
        length, target_length = 0, 0.0
        for words, texts in zip(hypotheses, targets, strict=True):
            length += len(words)
            target_length += sum(map(len, texts)) / len(texts)
            for n in orders:
                limits: Counter[tuple[str, ...]] = Counter()
                for text in texts:
                    limits |= count_ngrams(text, n)  # maximum over the references
                ngrams = count_ngrams(words, n)
                total[n] += ngrams.total()
                for gram, count in (ngrams & limits).items():
                    matched[n] += count * math.log2(counts[gram[:-1]] / counts[gram])
        if length == 0 or target_length == 0:
            return {"nist": 0.0}
        information = sum(matched[n] / max(total[n], 1) for n in orders)
        log_ratio = math.log(min(1.0, length / target_length))
        return {"nist": information * math.exp(BETA * log_ratio**2)}

    def signature(self) -> str:
        case = "lc" if self.lowercase else "mixed"
        return f"order:{self.max_order}|case:{case}|tok:spaces|refs:max-clip,mean-length|version:2"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        """Compute the value n-gram by n-gram, with lists instead of counts."""
        hypotheses, targets = self._tokenize(predictions, references)
        corpus = [words for texts in targets for words in texts]
        value = 0.0
        for n in range(1, self.max_order + 1):
            grams = [_ngrams(words, n) for words in hypotheses]
            limits = [[_ngrams(words, n) for words in texts] for texts in targets]
            every = [gram for words in corpus for gram in _ngrams(words, n)]
            prefixes = [gram for words in corpus for gram in _ngrams(words, n - 1)]
            information = 0.0
            for own, others in zip(grams, limits, strict=True):
                for gram in set(own):
                    clipped = min(own.count(gram), max(other.count(gram) for other in others))
                    if clipped:
                        ratio = prefixes.count(gram[:-1]) / every.count(gram)
                        information += clipped * math.log2(ratio)
            value += information / max(sum(map(len, grams)), 1)
        length = sum(map(len, hypotheses))
        target_length = sum(sum(map(len, texts)) / len(texts) for texts in targets)
        if not length or not target_length:
            return {"nist": 0.0}
        return {"nist": value * math.exp(BETA * math.log(min(1, length / target_length)) ** 2)}

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


def _ngrams(words: list[str], n: int) -> list[tuple[str, ...]]:
    if n == 0:
        return [()] * len(words)
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
