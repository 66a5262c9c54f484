"""Macro-averaged F1."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from zoo import ZooError
from zoo.plugin import Metric
from zoo_metrics.validation import zip_pairs


class MacroF1(Metric):
    r"""Mean of the F1 of all classes that occur in predictions or references.

    .. math::
        \frac{1}{C} \sum_c \frac{2 |\hat I_c \cap I_c|}{|\hat I_c| + |I_c|}

    I_c are the items of class c, and the items for which c is predicted. A prediction or reference
    is the list of label IDs of an item; of a classifier it has one.

    Paper: Lewis 1991, section 5.

    Shapes:
        N lists of label IDs, N lists of label IDs -> {macro-f1: from 0 to 1}.
    """

    name: ClassVar[str] = "macro-f1"
    paper: ClassVar[str] = "Lewis 1991, Evaluating Text Categorization"
    consumes: ClassVar[Literal["labels"]] = "labels"

    def __init__(self) -> None:
        self.correct: Counter[int] = Counter()
        self.total: Counter[int] = Counter()
        """Of each label, how often it is predicted plus how often it is expected."""

    def update(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> None:
        for predicted, expected in zip_pairs(self.name, predictions, references):
            self.correct.update(set(predicted) & set(expected))
            self.total.update(set(predicted))
            self.total.update(set(expected))

    def merge(self, other: Self) -> None:
        self.correct.update(other.correct)
        self.total.update(other.total)

    def compute(self) -> dict[str, float]:
        if not self.total:
            raise ZooError("macro-f1 has no value: no label is predicted or expected")
        scores = [2 * self.correct[label] / count for label, count in self.total.items()]
        return {self.name: sum(scores) / len(scores)}

    def signature(self) -> str:
        return "macro-f1|unit:item|version:1"

    def reference(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> dict[str, float]:
        pairs = list(zip(predictions, references, strict=True))
        labels = {label for pair in pairs for side in pair for label in side}
        scores = []
        for label in labels:
            hits = sum(label in p and label in r for p, r in pairs)
            misses = sum((label in p) != (label in r) for p, r in pairs)
            scores.append(hits / (hits + misses / 2))
        return {self.name: sum(scores) / len(scores)}

    def example(self, count: int, rng: random.Random) -> tuple[list[list[int]], list[list[int]]]:
        def labels() -> list[list[int]]:
            return [[rng.randrange(3)] for _ in range(count)]

        return labels(), labels()
