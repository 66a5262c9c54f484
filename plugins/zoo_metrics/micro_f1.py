"""Micro-averaged F1 of multi-label classification."""

import random
from collections.abc import Sequence
from typing import ClassVar, Literal

from zoo_metrics.ratio_metric import RatioMetric


class MicroF1(RatioMetric):
    r"""Micro-averaged F1 of label sets, over all items and labels.

    .. math:: F_1 = \frac{2 \sum_i |\hat Y_i \cap Y_i|}{\sum_i |\hat Y_i| + \sum_i |Y_i|}

    A prediction or reference is the list of label IDs of an item, in any order, possibly empty.
    Convert the logits of a multi-label model to label IDs first, with `(logits > 0).nonzero()`. If
    all lists are empty, ZooError is raised.

    Paper: Lewis 1991.

    Shapes:
        N lists of label IDs, N lists of label IDs -> {micro-f1: from 0 to 1}.
    """

    name: ClassVar[str] = "micro-f1"
    paper: ClassVar[str] = "Lewis 1991, Evaluating Text Categorization"
    consumes: ClassVar[Literal["labels"]] = "labels"  # type: ignore[assignment]
    unit: ClassVar[str] = "label"

    def count(self, predicted: Sequence[int], reference: Sequence[int]) -> tuple[int, int]:
        predicted_set, reference_set = set(predicted), set(reference)
        correct = len(predicted_set & reference_set)
        return 2 * correct, len(predicted_set) + len(reference_set)

    def reference(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> dict[str, float]:
        hits = [
            [label in reference for label in set(predicted)]
            for predicted, reference in zip(predictions, references, strict=True)
        ]
        correct = sum(map(sum, hits))
        if not any([*predictions, *references]):
            raise self.no_value_error()
        if not correct:
            return {"micro-f1": 0.0}
        precision = correct / sum(map(len, hits))
        recall = correct / sum(len(set(reference)) for reference in references)
        return {"micro-f1": 2 * precision * recall / (precision + recall)}

    def example(self, count: int, rng: random.Random) -> tuple[list[list[int]], list[list[int]]]:
        def label_lists() -> list[list[int]]:
            return [[v for v in range(4) if rng.random() < 0.5] for _ in range(count)]

        return label_lists(), label_lists()
