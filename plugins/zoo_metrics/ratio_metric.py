"""Base class of metrics that are a ratio of counts."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from zoo import ZooError
from zoo.plugin import Metric
from zoo_metrics.validation import zip_pairs


class RatioMetric(Metric):
    """Ratio of correct to total counts, summed over all pairs."""

    consumes: ClassVar[Literal["tokens"]] = "tokens"
    unit: ClassVar[str]
    """What is counted, for the signature."""

    def __init__(self) -> None:
        self.correct = 0
        self.total = 0

    @abstractmethod
    def count(self, predicted: Sequence[int], reference: Sequence[int]) -> tuple[int, int]:
        """Return the correct and the total count of one pair."""

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
            raise self.no_value_error()
        return {self.name: self.correct / self.total}

    def no_value_error(self) -> ZooError:
        """Return the error for a total count of 0."""
        return ZooError(f"{self.name} has no value: the total count is 0")

    def signature(self) -> str:
        return f"{self.name}|unit:{self.unit}|version:1"
