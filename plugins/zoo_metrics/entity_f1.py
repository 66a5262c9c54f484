"""F1 of entities."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from zoo.plugin import Metric
from zoo_metrics.validation import zip_pairs

Entity = tuple[str, int, int]


class EntityF1(Metric):
    r"""Micro-averaged precision, recall and F1 of entities, as conlleval computes them.

    .. math:: F_1 = \frac{2 \sum_i |\hat E_i \cap E_i|}{\sum_i |\hat E_i| + \sum_i |E_i|}

    A predicted entity is correct if its type and both its ends are those of an expected one. The
    entities are read from tags such as B-PER, I-PER and O. Values are 0 if there are none.

    Paper: Tjong Kim Sang and De Meulder 2003, section 2.4.

    Shapes:
        N lists of entities (type, first position, end), twice -> {entity-f1, entity-f1_precision,
        entity-f1_recall: from 0 to 1}; `details` has those of each type.
    """

    name: ClassVar[str] = "entity-f1"
    paper: ClassVar[str] = (
        "Tjong Kim Sang and De Meulder 2003, Introduction to the CoNLL-2003 shared task. "
        "https://arxiv.org/abs/cs/0306050"
    )
    consumes: ClassVar[Literal["entities"]] = "entities"

    def __init__(self) -> None:
        self.correct: Counter[str] = Counter()
        self.predicted: Counter[str] = Counter()
        self.expected: Counter[str] = Counter()

    def update(
        self, predictions: Sequence[Sequence[Entity]], references: Sequence[Sequence[Entity]]
    ) -> None:
        for predicted, expected in zip_pairs(self.name, predictions, references):
            self.correct.update(label for label, _, _ in {*predicted} & {*expected})
            self.predicted.update(label for label, _, _ in predicted)
            self.expected.update(label for label, _, _ in expected)

    def merge(self, other: Self) -> None:
        self.correct.update(other.correct)
        self.predicted.update(other.predicted)
        self.expected.update(other.expected)

    def compute(self) -> dict[str, float]:
        totals = (counts.total() for counts in (self.correct, self.predicted, self.expected))
        scores = _scores(*totals)
        return {
            "entity-f1": scores["f1"],
            "entity-f1_precision": scores["precision"],
            "entity-f1_recall": scores["recall"],
        }

    def details(self) -> dict[str, dict[str, dict[str, float]]]:
        labels = sorted(self.predicted.keys() | self.expected.keys())
        rows = {
            label: {
                **_scores(self.correct[label], self.predicted[label], self.expected[label]),
                "targets": self.expected[label],
            }
            for label in labels
        }
        return {"entities": rows} if rows else {}

    def signature(self) -> str:
        return "entity-f1|unit:entity|mode:conlleval|version:1"

    def reference(
        self, predictions: Sequence[Sequence[Entity]], references: Sequence[Sequence[Entity]]
    ) -> dict[str, float]:
        found = [(n, *entity) for n, row in enumerate(predictions) for entity in row]
        expected = [(n, *entity) for n, row in enumerate(references) for entity in row]
        hits = sum(entity in expected for entity in found)
        precision = hits / len(found) if found else 0.0
        recall = hits / len(expected) if expected else 0.0
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        return {"entity-f1": f1, "entity-f1_precision": precision, "entity-f1_recall": recall}

    def example(self, count: int, rng: random.Random) -> tuple[list[Any], list[Any]]:
        def entities() -> list[list[Entity]]:
            return [
                [(rng.choice("AB"), n, n + rng.randint(1, 2)) for n in range(rng.randint(0, 2))]
                for _ in range(count)
            ]

        return entities(), entities()


def _scores(correct: int, predicted: int, expected: int) -> dict[str, float]:
    return {
        "precision": correct / predicted if predicted else 0.0,
        "recall": correct / expected if expected else 0.0,
        "f1": 2 * correct / (predicted + expected) if correct else 0.0,
    }
