"""ROUGE-L, as in the COCO caption evaluation."""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, ClassVar

from pydantic import Field

from zoo_metrics.mean_metric import MeanMetric
from zoo_metrics.text_metric import lcs_length, split_words


class ROUGECoco(MeanMetric):
    r"""ROUGE-L of the COCO caption evaluation: F-score of the longest common subsequence.

    .. math:: F = \frac{(1 + \beta^2) P R}{R + \beta^2 P}, \quad
        P = \max_k \frac{\mathrm{LCS}(\hat y, y_k)}{|\hat y|}, \quad
        R = \max_k \frac{\mathrm{LCS}(\hat y, y_k)}{|y_k|}

    Precision and recall are each the maximum over the references y_k, possibly of different ones.
    The value is the mean over the predictions. Texts are split at whitespace: tokenise and
    lower-case captions first to compare with published values. Implemented here; the method
    `reference` computes subsequences recursively. `rouge-google` is the metric of summarisation.

    Paper: Lin 2004, section 3.1; Chen et al. 2015 (COCO captions), section 3.3.

    Args:
        beta: weight of recall relative to precision.

    Shapes:
        N predictions, N lists of references -> {rouge-coco: from 0 to 1}.
    """

    name: ClassVar[str] = "rouge-coco"
    paper: ClassVar[str] = (
        "Chen et al. 2015, Microsoft COCO Captions: Data Collection and Evaluation Server, "
        "arXiv:1504.00325"
    )

    def __init__(self, *, beta: Annotated[float, Field(ge=0)] = 1.2) -> None:
        super().__init__()
        self.beta = beta

    def score(self, prediction: str, texts: Sequence[str]) -> dict[str, float]:
        hypothesis, *targets = (split_words(text) for text in (prediction, *texts))
        lengths = [lcs_length(hypothesis, target) for target in targets]
        P = max(lengths) / max(len(hypothesis), 1)
        R = max(lcs / max(len(target), 1) for lcs, target in zip(lengths, targets, strict=True))
        return {self.name: self._f_score(P, R)}

    def _f_score(self, P: float, R: float) -> float:
        if P == 0 or R == 0:
            return 0.0
        square = self.beta * self.beta
        return (1 + square) * P * R / (R + square * P)

    def signature(self) -> str:
        return f"beta:{self.beta}|refs:max-p,max-r|mean:sentences|case:mixed|tok:spaces|version:1"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        total = 0.0
        for prediction, texts in zip(predictions, references, strict=True):
            P = R = 0.0
            for text in texts:
                common = _common_words(prediction.split(), text.split())
                P = max(P, common / max(len(prediction.split()), 1))
                R = max(R, common / max(len(text.split()), 1))
            total += self._f_score(P, R)
        return {self.name: total / len(predictions)}


def _common_words(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, recursively."""

    @cache
    def common(i: int, j: int) -> int:
        if i == len(a) or j == len(b):
            return 0
        if a[i] == b[j]:
            return 1 + common(i + 1, j + 1)
        return max(common(i + 1, j), common(i, j + 1))

    return common(0, 0)
