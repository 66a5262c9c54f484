"""Base class of metrics computed with sacrebleu."""

from collections.abc import Sequence
from typing import Any

from zoo_metrics.text_metric import CorpusMetric


class SacrebleuMetric(CorpusMetric):
    """Corpus metric computed by a scorer of sacrebleu.

    Attributes:
        scorer: the metric object of sacrebleu.
        signature_prefix: parameters that the signature of sacrebleu does not include.
    """

    scorer: Any
    signature_prefix: str = ""

    def compute(self) -> dict[str, float]:
        predictions, references = self.get_corpus()
        result = self.scorer.corpus_score(predictions, transpose_references(references))
        return {self.name: float(result.score)}

    def signature(self) -> str:
        self.compute()  # the signature of sacrebleu includes the number of references
        return f"{self.signature_prefix}{self.scorer.get_signature()}"


def transpose_references(references: Sequence[Sequence[str]]) -> list[list[Any]]:
    """Return one list per reference index, as sacrebleu expects, with None for missing ones."""
    max_references = max(len(texts) for texts in references)
    return [
        [texts[k] if k < len(texts) else None for texts in references]
        for k in range(max_references)
    ]
