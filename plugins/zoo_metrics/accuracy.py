"""Token accuracy."""

import random
from collections.abc import Sequence
from typing import ClassVar

from zoo_metrics.ratio_metric import RatioMetric


class Accuracy(RatioMetric):
    r"""Token accuracy: share of reference tokens predicted at the same position.

    .. math:: \mathrm{accuracy} = \frac{\sum_i |\{t : \hat y_{it} = y_{it}\}|}{\sum_i |y_i|}

    Positions after the end of a prediction are incorrect; tokens after the end of the reference are
    ignored.

    Shapes:
        N lists of token IDs, N lists of token IDs -> {accuracy: from 0 to 1}.
    """

    name: ClassVar[str] = "accuracy"
    paper: ClassVar[str] = "Jurafsky and Martin, Speech and Language Processing, on evaluation"
    unit: ClassVar[str] = "token"

    def count(self, predicted: Sequence[int], reference: Sequence[int]) -> tuple[int, int]:
        correct = sum(a == b for a, b in zip(predicted, reference, strict=False))
        return correct, len(reference)

    def reference(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> dict[str, float]:
        hits = [
            t < len(p) and p[t] == r[t]
            for p, r in zip(predictions, references, strict=True)
            for t in range(len(r))
        ]
        return {"accuracy": sum(hits) / len(hits)}

    def example(self, count: int, rng: random.Random) -> tuple[list[list[int]], list[list[int]]]:
        def sequences() -> list[list[int]]:
            return [[rng.randrange(3) for _ in range(rng.randint(1, 5))] for _ in range(count)]

        return sequences(), sequences()
