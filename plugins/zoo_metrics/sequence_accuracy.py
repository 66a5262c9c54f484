"""Sequence accuracy."""

import random
from collections.abc import Sequence
from typing import ClassVar

from zoo_metrics.ratio_metric import RatioMetric


class SequenceAccuracy(RatioMetric):
    r"""Sequence accuracy: share of predictions that equal their reference.

    .. math:: \frac{1}{N} \sum_i [\hat y_i = y_i]

    Shapes:
        N lists of token IDs, N lists of token IDs -> {sequence-accuracy: from 0 to 1}.
    """

    name: ClassVar[str] = "sequence-accuracy"
    paper: ClassVar[str] = (
        "Lake and Baroni 2018, Generalization without Systematicity, arXiv:1711.00350"
    )
    unit: ClassVar[str] = "sequence"

    def count(self, predicted: Sequence[int], reference: Sequence[int]) -> tuple[int, int]:
        return int(list(predicted) == list(reference)), 1

    def reference(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> dict[str, float]:
        errors = 0
        for predicted, reference in zip(predictions, references, strict=True):
            equal = len(predicted) == len(reference)
            equal = equal and not any(a != b for a, b in zip(predicted, reference, strict=True))
            errors += not equal
        return {"sequence-accuracy": 1 - errors / len(predictions)}

    def example(self, count: int, rng: random.Random) -> tuple[list[list[int]], list[list[int]]]:
        def sequences() -> list[list[int]]:
            return [[rng.randrange(2) for _ in range(rng.randint(1, 2))] for _ in range(count)]

        return sequences(), sequences()
