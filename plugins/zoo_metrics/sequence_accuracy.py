"""Sequence accuracy: all or nothing."""

import random
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from zoo import Metric, ZooError
from zoo_metrics.pairs import paired


class SequenceAccuracy(Metric):
    r"""The share of predictions that equal their reference from first token to last.

    .. math:: \frac{1}{N} \sum_i [\hat y_i = y_i]

    Predictions and references are lists of token ids.

    Shapes:
        N lists of ids, N lists of ids -> {sequence-accuracy: share from 0 to 1}.
    """

    name: ClassVar[str] = "sequence-accuracy"
    paper: ClassVar[str] = (
        "Lake and Baroni 2018, Generalization without Systematicity, arXiv:1711.00350"
    )
    consumes: ClassVar[Literal["tokens"]] = "tokens"

    def __init__(self) -> None:
        self.right = 0
        self.total = 0

    def update(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> None:
        for predicted, reference in paired(self.name, predictions, references):
            self.right += list(predicted) == list(reference)
            self.total += 1

    def merge(self, other: Self) -> None:
        self.right += other.right
        self.total += other.total

    def compute(self) -> dict[str, float]:
        if self.total == 0:
            raise ZooError("sequence-accuracy of no sequences has no value")
        return {"sequence-accuracy": self.right / self.total}

    def signature(self) -> str:
        return "sequence-accuracy|unit:sequence|version:1"

    def reference(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> dict[str, float]:
        wrong = 0
        for predicted, reference in zip(predictions, references, strict=True):
            same = len(predicted) == len(reference)
            same = same and not any(a != b for a, b in zip(predicted, reference, strict=True))
            wrong += not same
        return {"sequence-accuracy": 1 - wrong / len(predictions)}

    def example(self, count: int, rng: random.Random) -> tuple[list[list[int]], list[list[int]]]:
        def sentences() -> list[list[int]]:
            return [[rng.randrange(2) for _ in range(rng.randint(1, 2))] for _ in range(count)]

        return sentences(), sentences()
