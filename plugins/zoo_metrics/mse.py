"""Mean squared error."""

from collections.abc import Sequence
from typing import ClassVar

from zoo_metrics.value_metric import Numbers, ValueMetric


class MSE(ValueMetric):
    r"""Mean squared error of numbers.

    .. math:: \frac{1}{N} \sum_i (\hat y_i - y_i)^2

    Shapes:
        N lists of numbers, N lists of numbers -> {mse: at least 0}.
    """

    name: ClassVar[str] = "mse"
    paper: ClassVar[str] = "Legendre 1805, Nouvelles méthodes pour la détermination des orbites"
    lower_is_better: ClassVar[bool] = True

    def score(self, predicted: Numbers, expected: Numbers) -> float:
        return float(((predicted - expected) ** 2).mean())

    def reference(
        self, predictions: Sequence[Sequence[float]], references: Sequence[Sequence[float]]
    ) -> dict[str, float]:
        pairs = zip(predictions, references, strict=True)
        errors = [(a - b) ** 2 for p, r in pairs for a, b in zip(p, r, strict=True)]
        return {self.name: sum(errors) / len(errors)}
