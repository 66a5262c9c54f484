"""Mean absolute error."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from zoo_metrics.value_metric import Numbers, ValueMetric


class MAE(ValueMetric):
    r"""Mean absolute error of numbers.

    .. math:: \frac{1}{N} \sum_i |\hat y_i - y_i|

    Shapes:
        N lists of numbers, N lists of numbers -> {mae: at least 0}.
    """

    name: ClassVar[str] = "mae"
    paper: ClassVar[str] = (
        "Willmott and Matsuura 2005, Advantages of the mean absolute error (MAE) over the root "
        "mean square error (RMSE) in assessing average model performance"
    )
    lower_is_better: ClassVar[bool] = True

    def score(self, predicted: Numbers, expected: Numbers) -> float:
        return float(np.abs(predicted - expected).mean())

    def reference(
        self, predictions: Sequence[Sequence[float]], references: Sequence[Sequence[float]]
    ) -> dict[str, float]:
        pairs = zip(predictions, references, strict=True)
        errors = [abs(a - b) for p, r in pairs for a, b in zip(p, r, strict=True)]
        return {self.name: sum(errors) / len(errors)}
