"""Micro-averaged F1 of items that have any number of names."""

import random
from collections.abc import Sequence
from typing import ClassVar

from zoo_metrics.ratio_metric import RatioMetric


class MicroF1(RatioMetric):
    r"""How well the names given agree with the true ones, all items and names in one pool.

    .. math:: F_1 = \frac{2 \sum_i |\hat Y_i \cap Y_i|}{\sum_i |\hat Y_i| + \sum_i |Y_i|}

    That is the harmonic mean of precision and recall over the pool. Predictions and references are
    lists of the ids of an item's names, in any order and perhaps none; of logits for yes or no,
    those above 0.

    Shapes:
        N lists of ids, N lists of ids -> {micro-f1: share from 0 to 1}.
    """

    name: ClassVar[str] = "micro-f1"
    paper: ClassVar[str] = "Lewis 1991, Evaluating Text Categorization"
    unit: ClassVar[str] = "name"

    def count(self, predicted: Sequence[int], reference: Sequence[int]) -> tuple[int, int]:
        given, true = set(predicted), set(reference)
        return 2 * len(given & true), len(given) + len(true)

    def reference(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> dict[str, float]:
        hits = [
            [name in reference for name in set(predicted)]
            for predicted, reference in zip(predictions, references, strict=True)
        ]
        correct = sum(map(sum, hits))
        if not correct:
            return {"micro-f1": 0.0}
        precision = correct / sum(map(len, hits))
        recall = correct / sum(len(set(reference)) for reference in references)
        return {"micro-f1": 2 * precision * recall / (precision + recall)}

    def example(self, count: int, rng: random.Random) -> tuple[list[list[int]], list[list[int]]]:
        def label_lists() -> list[list[int]]:
            return [[v for v in range(4) if rng.random() < 0.5] for _ in range(count)]

        return label_lists(), label_lists()
