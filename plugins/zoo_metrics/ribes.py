"""RIBES, by nltk."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

from pydantic import Field

from zoo import ZooError
from zoo.plugin import MissingExtra
from zoo_metrics.text_metric import TextMetric, no_texts_error, validate_texts


class RIBES(TextMetric):
    r"""How far the common words of prediction and reference stand in one order.

    .. math:: \mathrm{RIBES} = \frac{\tau + 1}{2} \cdot P_1^\alpha \cdot
        \min(1, e^{1 - |y| / |\hat y|})^\beta

    tau is Kendall's rank correlation of the words that can be aligned, P_1 their share of the
    prediction. The value is the mean of the predictions' values, each with its best reference.
    Paper: Isozaki et al. 2010, section 3; computed by nltk, whose alignment lacks some
    refinements of the authors' script. Words are what stands between spaces.
    A prediction is a text; its reference is a list of one or more texts.

    Args:
        alpha: how much the share of aligned words counts.
        beta: how much brevity counts.
        lowercase: compare without case.

    Shapes:
        N texts, N lists of texts -> {ribes: from 0 to 1}.
    """

    name: ClassVar[str] = "ribes"
    paper: ClassVar[str] = (
        "Isozaki et al. 2010, Automatic Evaluation of Translation Quality for Distant Language "
        "Pairs"
    )

    def __init__(
        self,
        *,
        alpha: Annotated[float, Field(ge=0)] = 0.25,
        beta: Annotated[float, Field(ge=0)] = 0.10,
        lowercase: bool = False,
    ) -> None:
        try:
            import nltk.translate.ribes_score as library
        except ImportError:
            raise MissingExtra("metric 'ribes'", library="nltk", extra="metrics") from None
        self.library = library
        self.alpha = alpha
        self.beta = beta
        self.lowercase = lowercase
        self.total = 0.0
        self.count = 0

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        pairs = validate_texts(self.name, predictions, references)
        scores = [self._score(prediction, texts) for prediction, texts in pairs]
        self.total += sum(scores)
        self.count += len(scores)

    def _score(self, prediction: str, texts: Sequence[str]) -> float:
        most = self.library.MAX_ALIGNMENT_LEN
        tokenized_references, words = [self._words(text) for text in texts], self._words(prediction)
        longest = max(map(len, [words, *tokenized_references]))
        if longest > most:
            raise ZooError(f"ribes takes texts of at most {most} words, but one has {longest}")
        return float(
            self.library.sentence_ribes(tokenized_references, words, self.alpha, self.beta)
        )

    def _words(self, text: str) -> list[str]:
        return text.lower().split() if self.lowercase else text.split()

    def merge(self, other: Self) -> None:
        self.total += other.total
        self.count += other.count

    def compute(self) -> dict[str, float]:
        if self.count == 0:
            raise no_texts_error(self.name)
        return {"ribes": self.total / self.count}

    def signature(self) -> str:
        import nltk

        case = "lc" if self.lowercase else "mixed"
        weights = f"alpha:{self.alpha}|beta:{self.beta}"
        return f"refs:best|{weights}|case:{case}|tok:spaces|nltk:{nltk.__version__}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        from nltk.translate.ribes_score import corpus_ribes

        hypotheses = [self._words(prediction) for prediction in predictions]
        tokenized_references = [[self._words(text) for text in texts] for texts in references]
        return {"ribes": corpus_ribes(tokenized_references, hypotheses, self.alpha, self.beta)}
