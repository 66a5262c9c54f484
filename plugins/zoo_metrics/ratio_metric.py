"""What metrics that are a share of right answers have in common."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from zoo import ZooError
from zoo.plugin import Metric
from zoo_metrics.validation import zip_pairs


class RatioMetric(Metric):
    """So much that is right of so much that is counted; the child counts a pair."""

    consumes: ClassVar[Literal["tokens"]] = "tokens"
    unit: ClassVar[str]

    def __init__(self) -> None:
        self.correct = 0
        self.total = 0

    @abstractmethod
    def count(self, predicted: Sequence[int], reference: Sequence[int]) -> tuple[int, int]:
        """How much is right, of how much."""

    def update(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> None:
        for predicted, reference in zip_pairs(self.name, predictions, references):
            correct, total = self.count(predicted, reference)
            self.correct += correct
            self.total += total

    def merge(self, other: Self) -> None:
        self.correct += other.correct
        self.total += other.total

    def compute(self) -> dict[str, float]:
        if self.total == 0:
            raise ZooError(f"{self.name} of no {self.unit}s has no value")
        return {self.name: self.correct / self.total}

    def signature(self) -> str:
        return f"{self.name}|unit:{self.unit}|version:1"
