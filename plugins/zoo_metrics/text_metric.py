"""What metrics of texts share: what they ask of their input, and ways to keep and to draw it."""

import random
from collections.abc import Sequence
from typing import Any, Self

from zoo import ZooError
from zoo.plugin import Metric
from zoo_metrics.validation import zip_pairs


def validate_texts(
    name: str, predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> list[tuple[str, list[str]]]:
    """Each text with a list of its reference texts; an error if there is something else."""
    pairs = list(zip_pairs(name, predictions, references))
    for prediction, texts in pairs:
        if not isinstance(prediction, str):
            raise ZooError(f"{name} takes texts, but a prediction is {_type_name(prediction)}")
        if isinstance(texts, str) or not texts or not all(isinstance(t, str) for t in texts):
            raise ZooError(
                f"{name} takes a list of one or more reference texts for each prediction"
            )
    return [(prediction, list(texts)) for prediction, texts in pairs]


def _type_name(value: Any) -> str:
    return f"of type {type(value).__name__}"


class TextMetric(Metric):
    """A metric of texts."""

    def example(self, count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
        return random_texts(count, rng)


class CorpusMetric(TextMetric):
    """A metric of texts that needs all of them at once."""

    def __init__(self) -> None:
        self.predictions: list[str] = []
        self.references: list[list[str]] = []

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for prediction, texts in validate_texts(self.name, predictions, references):
            self.predictions.append(prediction)
            self.references.append(texts)

    def merge(self, other: Self) -> None:
        self.update(other.predictions, other.references)

    def get_corpus(self) -> tuple[list[str], list[list[str]]]:
        """All predictions and their references, in their order; an error if there are none."""
        if not self.predictions:
            raise no_texts_error(self.name)
        return self.predictions, self.references


def no_texts_error(name: str) -> ZooError:
    return ZooError(f"{name} of no texts has no value")


def transpose_references(references: Sequence[Sequence[str]]) -> list[list[Any]]:
    """sacrebleu wants the first references of all, then the second ones, with None for none."""
    max_references = max(len(texts) for texts in references)
    return [
        [texts[k] if k < len(texts) else None for texts in references]
        for k in range(max_references)
    ]


def random_texts(count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
    """Predictions, each with one to three references, for the laws."""
    words = ["a", "cat", "sat", "on", "the", "mat", "and", "saw", "two", "dogs"]

    def text() -> str:
        return " ".join(rng.choices(words, k=rng.randint(4, 9)))

    return [text() for _ in range(count)], [
        [text() for _ in range(rng.randint(1, 3))] for _ in range(count)
    ]
