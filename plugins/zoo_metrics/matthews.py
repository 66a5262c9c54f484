"""Matthews correlation coefficient."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import numpy as np

from zoo import ZooError
from zoo.plugin import Metric
from zoo_metrics.validation import zip_pairs


class Matthews(Metric):
    r"""Matthews correlation coefficient of two or more classes.

    .. math::
        \frac{c s - \sum_k p_k t_k}{\sqrt{(s^2 - \sum_k p_k^2) (s^2 - \sum_k t_k^2)}}

    c of s items are predicted correctly; class k is predicted p_k times and expected t_k times. 0
    if all predictions or all references are the same class.

    Paper: Gorodkin 2004, equation 8, a generalisation of Matthews 1975.

    Shapes:
        N lists of one label ID, N lists of one label ID -> {matthews: from -1 to 1}.
    """

    name: ClassVar[str] = "matthews"
    paper: ClassVar[str] = (
        "Gorodkin 2004, Comparing two K-category assignments by a K-category correlation "
        "coefficient"
    )
    consumes: ClassVar[Literal["labels"]] = "labels"

    def __init__(self) -> None:
        self.correct = 0
        self.predicted: Counter[int] = Counter()
        self.expected: Counter[int] = Counter()

    def update(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> None:
        for predicted, expected in zip_pairs(self.name, predictions, references):
            if len(predicted) != 1 or len(expected) != 1:
                raise ZooError(
                    f"matthews: an item has {len(predicted)} predicted and {len(expected)} "
                    "expected labels, but must have one; for label sets use micro-f1 or macro-f1"
                )
            self.correct += predicted[0] == expected[0]
            self.predicted[predicted[0]] += 1
            self.expected[expected[0]] += 1

    def merge(self, other: Self) -> None:
        self.correct += other.correct
        self.predicted.update(other.predicted)
        self.expected.update(other.expected)

    def compute(self) -> dict[str, float]:
        total = self.predicted.total()
        if not total:
            raise ZooError("matthews has no value: no labels were added")
        agreement = sum(count * self.expected[label] for label, count in self.predicted.items())
        spreads = [
            total**2 - sum(count**2 for count in counts.values())
            for counts in (self.predicted, self.expected)
        ]
        norm = float(spreads[0] * spreads[1]) ** 0.5
        return {self.name: (self.correct * total - agreement) / norm if norm else 0.0}

    def signature(self) -> str:
        return "matthews|unit:item|version:1"

    def reference(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> dict[str, float]:
        labels = sorted({label for rows in (predictions, references) for (label,) in rows})
        x, y = (
            np.array([[label == k for k in labels] for (label,) in rows], dtype=float)
            for rows in (predictions, references)
        )
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        norm = ((x * x).sum() * (y * y).sum()) ** 0.5
        return {self.name: float((x * y).sum() / norm) if norm else 0.0}

    def example(self, count: int, rng: random.Random) -> tuple[list[list[int]], list[list[int]]]:
        def labels() -> list[list[int]]:
            return [[rng.randrange(3)] for _ in range(count)]

        return labels(), labels()
