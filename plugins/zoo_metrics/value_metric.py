"""Base class of metrics that compare numbers."""

import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from zoo import ZooError
from zoo.plugin import Metric
from zoo_metrics.validation import zip_pairs

Numbers = NDArray[np.float64]


class ValueMetric(Metric):
    """A function of all predicted and expected numbers."""

    consumes: ClassVar[Literal["values"]] = "values"

    def __init__(self) -> None:
        self.predicted: list[float] = []
        self.expected: list[float] = []

    @abstractmethod
    def score(self, predicted: Numbers, expected: Numbers) -> float:
        """Compute the value from all numbers [N]."""

    def update(
        self, predictions: Sequence[Sequence[float]], references: Sequence[Sequence[float]]
    ) -> None:
        for predicted, expected in zip_pairs(self.name, predictions, references):
            if len(predicted) != len(expected):
                raise ZooError(
                    f"{self.name}: a prediction has {len(predicted)} numbers, but its reference "
                    f"has {len(expected)}"
                )
            self.predicted += map(float, predicted)
            self.expected += map(float, expected)

    def merge(self, other: Self) -> None:
        self.predicted += other.predicted
        self.expected += other.expected

    def compute(self) -> dict[str, float]:
        if not self.predicted:
            raise ZooError(f"{self.name} has no value: no numbers were added")
        value = self.score(np.array(self.predicted), np.array(self.expected))
        return {self.name: float(value)}

    def signature(self) -> str:
        return f"{self.name}|unit:number|version:1"

    def example(
        self, count: int, rng: random.Random
    ) -> tuple[list[list[float]], list[list[float]]]:
        def numbers() -> list[list[float]]:
            return [[float(rng.randrange(9)) for _ in range(2)] for _ in range(count)]

        return numbers(), numbers()
