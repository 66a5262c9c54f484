"""Pearson correlation."""

import itertools
import statistics
from collections.abc import Sequence
from typing import ClassVar

from zoo_metrics.value_metric import Numbers, ValueMetric


class Pearson(ValueMetric):
    r"""Pearson correlation of predicted and expected numbers.

    .. math::
        r = \frac{\sum_i (\hat y_i - \bar{\hat y}) (y_i - \bar y)}
            {\sqrt{\sum_i (\hat y_i - \bar{\hat y})^2 \sum_i (y_i - \bar y)^2}}

    NaN if all predictions or all references are equal.

    Shapes:
        N lists of numbers, N lists of numbers -> {pearson: from -1 to 1}.
    """

    name: ClassVar[str] = "pearson"
    paper: ClassVar[str] = "Pearson 1895, Note on regression and inheritance"

    def score(self, predicted: Numbers, expected: Numbers) -> float:
        return correlation(predicted, expected)

    def reference(
        self, predictions: Sequence[Sequence[float]], references: Sequence[Sequence[float]]
    ) -> dict[str, float]:
        flat = (list(itertools.chain(*rows)) for rows in (predictions, references))
        return {self.name: statistics.correlation(*flat)}


def correlation(x: Numbers, y: Numbers) -> float:
    """Return the Pearson correlation of x [N] and y [N]; NaN if one of them is constant."""
    x, y = x - x.mean(), y - y.mean()
    norm = float(((x**2).sum() * (y**2).sum()) ** 0.5)
    return float((x * y).sum()) / norm if norm > 0 else float("nan")
