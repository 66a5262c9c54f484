"""Token accuracy."""

import random
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from zoo import Metric, ZooError
from zoo_metrics.pairs import paired


class Accuracy(Metric):
    r"""The share of reference tokens that the prediction has in the same position.

    .. math:: \mathrm{accuracy} = \frac{\sum_i |\{t : \hat y_{it} = y_{it}\}|}{\sum_i |y_i|}

    A prediction that ends early misses the rest; what it says beyond the reference's end does
    not count. Predictions and references are lists of token ids.

    Shapes:
        N lists of ids, N lists of ids -> {accuracy: share from 0 to 1}.
    """

    name: ClassVar[str] = "accuracy"
    paper: ClassVar[str] = "Jurafsky and Martin, Speech and Language Processing, on evaluation"
    consumes: ClassVar[Literal["tokens"]] = "tokens"

    def __init__(self) -> None:
        self.right = 0
        self.total = 0

    def update(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> None:
        for predicted, reference in paired(self.name, predictions, references):
            self.right += sum(a == b for a, b in zip(predicted, reference, strict=False))
            self.total += len(reference)

    def merge(self, other: Self) -> None:
        self.right += other.right
        self.total += other.total

    def compute(self) -> dict[str, float]:
        if self.total == 0:
            raise ZooError("accuracy of no tokens has no value")
        return {"accuracy": self.right / self.total}

    def signature(self) -> str:
        return "accuracy|unit:token|version:1"

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
        def sentences() -> list[list[int]]:
            return [[rng.randrange(3) for _ in range(rng.randint(1, 5))] for _ in range(count)]

        return sentences(), sentences()
