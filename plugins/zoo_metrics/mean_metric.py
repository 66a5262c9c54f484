"""Base class of metrics that are a mean over the predictions."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from zoo_metrics.text_metric import TextMetric, no_texts_error, validate_texts


class MeanMetric(TextMetric):
    """Mean over the predictions of one or more named scores."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = {}
        self.count = 0

    @abstractmethod
    def score(self, prediction: str, texts: Sequence[str]) -> dict[str, float]:
        """Compute the scores of one prediction with its references."""

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        pairs = validate_texts(self.name, predictions, references)
        scores = [self.score(prediction, texts) for prediction, texts in pairs]
        for score in scores:
            self._add(score)
        self.count += len(scores)

    def merge(self, other: Self) -> None:
        self._add(other.totals)
        self.count += other.count

    def compute(self) -> dict[str, float]:
        if self.count == 0:
            raise no_texts_error(self.name)
        return {name: total / self.count for name, total in self.totals.items()}

    def _add(self, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.totals[name] = self.totals.get(name, 0.0) + value
