"""Scores of each class, and the confusion matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

Tables = dict[str, dict[str, dict[str, float]]]
"""Values by title of a table, row and column."""

CLASSES = "classes"
CONFUSION = "confusion (rows: target, columns: predicted)"
MAX_CLASSES = 1000
MAX_COLUMNS = 20
"""Confusion matrices of more classes are not returned."""


class ClassReport:
    """Counts predicted and target classes.

    Precision is the share of the predictions of a class that are correct, recall the share of its
    targets that are predicted, F1 their harmonic mean; 0 if there are none to divide by.
    """

    def __init__(self) -> None:
        self.correct: Counter[int] = Counter()
        self.predicted: Counter[int] = Counter()
        self.targets: Counter[int] = Counter()
        self.pairs: Counter[tuple[int, int]] = Counter()
        self.single = True
        """Whether all items have one class and one prediction, so that they can be confused."""

    def update(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> None:
        """Add the predicted and the target class IDs of items."""
        for predicted, target in zip(predictions, references, strict=True):
            self.correct.update(set(predicted) & set(target))
            self.predicted.update(set(predicted))
            self.targets.update(set(target))
            if len(predicted) == len(target) == 1:
                self.pairs[target[0], predicted[0]] += 1
            else:
                self.single = False

    def merge(self, other: ClassReport) -> None:
        self.correct.update(other.correct)
        self.predicted.update(other.predicted)
        self.targets.update(other.targets)
        self.pairs.update(other.pairs)
        self.single = self.single and other.single

    def tables(self, name: Callable[[int], str]) -> Tables:
        """Return the scores of the classes that occur, and the confusion matrix of few classes.

        Args:
            name: returns the name of a class ID.
        """
        ids = sorted(self.predicted.keys() | self.targets.keys())
        if not ids or len(ids) > MAX_CLASSES:
            return {}
        names = {number: name(number) for number in ids}
        if len(set(names.values())) < len(ids):
            names = {number: str(number) for number in ids}
        tables = {CLASSES: {names[number]: self._scores(number) for number in ids}}
        if self.single and len(ids) <= MAX_COLUMNS:
            tables[CONFUSION] = {
                names[row]: {names[column]: self.pairs[row, column] for column in ids}
                for row in ids
            }
        return tables

    def _scores(self, number: int) -> dict[str, float]:
        correct, predicted, targets = (
            counts[number] for counts in (self.correct, self.predicted, self.targets)
        )
        return {
            "precision": correct / predicted if predicted else 0.0,
            "recall": correct / targets if targets else 0.0,
            "f1": 2 * correct / (predicted + targets),
            "targets": targets,
        }
