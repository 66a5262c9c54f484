"""NIST, by nltk."""

import random
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from zoo.plugin import MissingExtra
from zoo_metrics.text_metric import CorpusMetric, random_texts


class NIST(CorpusMetric):
    r"""N-gram precision of a corpus in which rare n-grams, that say more, count more.

    .. math:: \mathrm{NIST} = \sum_{n=1}^{N}
        \frac{\sum_{g \in \hat G_n \cap G_n} \log_2 \frac{\#(g_1 \ldots g_{n-1})}{\#(g)}}
        {|\hat G_n|} \cdot \exp\left(\beta \ln^2 \min\left(1, \frac{|\hat y|}{|y|}\right)\right)

    Counts # are of the references; beta makes the last factor 1/2 at two thirds of the length.
    Paper: Doddington 2002, eqs. 2 and 3; computed by nltk over the whole corpus. Orders longer
    than every prediction add nothing. Words are what stands between spaces.
    A prediction is a text; its reference is a list of one or more texts.

    Args:
        max_order: N, the longest n-grams that count.
        lowercase: compare without case.

    Shapes:
        N texts, N lists of texts -> {nist: from 0 upward}.
    """

    name: ClassVar[str] = "nist"
    paper: ClassVar[str] = (
        "Doddington 2002, Automatic Evaluation of Machine Translation Quality Using N-gram "
        "Co-Occurrence Statistics"
    )

    def __init__(
        self, *, max_order: Annotated[int, Field(ge=1)] = 5, lowercase: bool = False
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
        predictions, references = self.get_corpus()
        hypotheses = [self._words(prediction) for prediction in predictions]
        wanted = [[self._words(text) for text in texts] for texts in references]
        # nltk divides by the number of n-grams said, and by the number of words wanted.
        order = min(self.max_order, max(len(words) for words in hypotheses))
        if order == 0 or not any(words for texts in wanted for words in texts):
            return {"nist": 0.0}
        return {"nist": float(self.library.corpus_nist(wanted, hypotheses, n=order))}

    def _words(self, text: str) -> list[str]:
        return text.lower().split() if self.lowercase else text.split()

    def signature(self) -> str:
        import nltk

        case = "lc" if self.lowercase else "mixed"
        return f"order:{self.max_order}|case:{case}|tok:spaces|nltk:{nltk.__version__}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        from nltk.translate.nist_score import corpus_nist

        hypotheses = [self._words(prediction) for prediction in predictions]
        wanted = [[self._words(text) for text in texts] for texts in references]
        return {"nist": corpus_nist(wanted, hypotheses, self.max_order)}

    def example(self, count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
        predictions, references = random_texts(count, rng)
        # One prediction long enough for the longest n-grams.
        longest = " ".join([predictions[0]] * self.max_order)
        return [longest, *predictions[1:]], references
