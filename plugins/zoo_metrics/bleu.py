"""BLEU, by sacrebleu."""

import random
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from zoo import Metric, MissingExtra, ZooError
from zoo_metrics.pairs import paired


class BLEU(Metric):
    r"""N-gram precision of a corpus against its references, with a penalty for brevity.

    .. math:: \mathrm{BLEU} = 100 \cdot \min(1, e^{1 - r/c}) \prod_{n=1}^{4} p_n^{1/4}

    Paper: Papineni et al. 2002; computed by sacrebleu (Post 2018) over the whole corpus, which
    smooths an order of n-grams without a match.
    A prediction is a text; its reference is a list of one or more texts.

    Args:
        tokenize: sacrebleu's tokeniser.
        lowercase: compare without case.

    Shapes:
        N texts, N lists of texts -> {bleu: from 0 to 100}.
    """

    name: ClassVar[str] = "bleu"
    paper: ClassVar[str] = (
        "Papineni et al. 2002, BLEU: a Method for Automatic Evaluation of Machine Translation"
    )

    def __init__(
        self,
        *,
        tokenize: Literal["13a", "intl", "char", "none"] = "13a",
        lowercase: bool = False,
    ) -> None:
        try:
            from sacrebleu.metrics.bleu import BLEU as SacreBLEU
        except ImportError:
            raise MissingExtra("metric 'bleu'", library="sacrebleu", extra="metrics") from None
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.scorer: Any = SacreBLEU(tokenize=tokenize, lowercase=lowercase)
        self.predictions: list[str] = []
        self.references: list[list[str]] = []

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        pairs = list(paired(self.name, predictions, references))
        if any(isinstance(texts, str) or not texts for _, texts in pairs):
            raise ZooError("bleu takes a list of one or more reference texts for each prediction")
        self.predictions += predictions
        self.references += [list(texts) for texts in references]

    def merge(self, other: Self) -> None:
        self.update(other.predictions, other.references)

    def compute(self) -> dict[str, float]:
        if not self.predictions:
            raise ZooError("bleu of no texts has no value")
        streams = _streams(self.references)
        return {"bleu": float(self.scorer.corpus_score(self.predictions, streams).score)}

    def signature(self) -> str:
        self.compute()  # sacrebleu knows its signature once it has seen the references
        return str(self.scorer.get_signature())

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        import sacrebleu

        score = sacrebleu.corpus_bleu(
            list(predictions),
            _streams(references),
            tokenize=self.tokenize,
            lowercase=self.lowercase,
        )
        return {"bleu": score.score}

    def example(self, count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
        words = ["a", "cat", "sat", "on", "the", "mat", "and", "saw", "a", "dog"]

        def text() -> str:
            return " ".join(rng.choices(words, k=rng.randint(4, 9)))

        return [text() for _ in range(count)], [
            [text() for _ in range(rng.randint(1, 3))] for _ in range(count)
        ]


def _streams(references: Sequence[Sequence[str]]) -> list[list[Any]]:
    """sacrebleu wants the first references of all, then the second ones, with None for none."""
    most = max(len(texts) for texts in references)
    return [[texts[k] if k < len(texts) else None for texts in references] for k in range(most)]
