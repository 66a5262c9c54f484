"""Hamming loss of multi-label classification."""

import random
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from zoo_metrics.ratio_metric import RatioMetric


class HammingLoss(RatioMetric):
    r"""Hamming loss: share of labels that are predicted wrongly, such as the error rate of bits.

    .. math:: \frac{1}{N L} \sum_i |\hat Y_i \mathbin{\triangle} Y_i|

    A prediction or reference is the list of label IDs of an item, possibly empty.

    Paper: Schapire and Singer 2000, section 2.

    Args:
        labels: number of labels, L.

    Shapes:
        N lists of label IDs, N lists of label IDs -> {hamming-loss: from 0 to 1}.
    """

    name: ClassVar[str] = "hamming-loss"
    paper: ClassVar[str] = (
        "Schapire and Singer 2000, BoosTexter: A Boosting-based System for Text Categorization"
    )
    consumes: ClassVar[Literal["labels"]] = "labels"  # type: ignore[assignment]
    lower_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "label"

    def __init__(self, *, labels: Annotated[int, Field(ge=1, le=100_000)]) -> None:
        super().__init__()
        self.labels = labels

    def count(self, predicted: Sequence[int], reference: Sequence[int]) -> tuple[int, int]:
        return len(set(predicted) ^ set(reference)), self.labels

    def reference(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> dict[str, float]:
        wrong = [
            (label in predicted) != (label in reference)
            for predicted, reference in zip(predictions, references, strict=True)
            for label in range(self.labels)
        ]
        return {self.name: sum(wrong) / len(wrong)}

    def signature(self) -> str:
        return f"{super().signature()}|labels:{self.labels}"

    def example(self, count: int, rng: random.Random) -> tuple[list[list[int]], list[list[int]]]:
        def label_lists() -> list[list[int]]:
            return [
                [v for v in range(min(self.labels, 8)) if rng.random() < 0.5] for _ in range(count)
            ]

        return label_lists(), label_lists()
