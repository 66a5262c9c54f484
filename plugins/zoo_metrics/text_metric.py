"""Base classes and helpers of text metrics."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Self

from zoo import ZooError
from zoo.plugin import Metric
from zoo_metrics.validation import zip_pairs


def validate_texts(
    name: str, predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> list[tuple[str, list[str]]]:
    """Return each prediction with its list of references; raise ZooError for other types."""
    pairs = list(zip_pairs(name, predictions, references))
    for index, (prediction, texts) in enumerate(pairs):
        if not isinstance(prediction, str):
            raise ZooError(
                f"{name}: prediction {index} has type {type(prediction).__name__}, but must be a "
                "string"
            )
        if isinstance(texts, str) or not texts or not all(isinstance(t, str) for t in texts):
            raise ZooError(
                f"{name}: the references of prediction {index} must be a list of one or more "
                "strings"
            )
    return [(prediction, list(texts)) for prediction, texts in pairs]


class TextMetric(Metric):
    """Base class of metrics of texts."""

    def example(self, count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
        return random_texts(count, rng)


class CorpusMetric(TextMetric):
    """Base class of metrics that are computed from all texts together."""

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
        """Return all predictions and their references; raise ZooError if there are none."""
        if not self.predictions:
            raise no_texts_error(self.name)
        return self.predictions, self.references


def no_texts_error(name: str) -> ZooError:
    return ZooError(f"{name} has no value: no texts were added; call update first")


def split_words(text: str, *, lowercase: bool = False) -> list[str]:
    """Split a text at whitespace."""
    return text.lower().split() if lowercase else text.split()


def count_ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """Count the n-grams of order n."""
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def lcs_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        previous = row
        row = [0]
        for j, y in enumerate(b):
            row.append(previous[j] + 1 if x == y else max(previous[j + 1], row[j]))
    return row[-1]


def random_texts(count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
    """Return random predictions, each with one to three references."""
    words = ["a", "cat", "sat", "on", "the", "mat", "and", "saw", "two", "dogs"]

    def text() -> str:
        return " ".join(rng.choices(words, k=rng.randint(4, 9)))

    return [text() for _ in range(count)], [
        [text() for _ in range(rng.randint(1, 3))] for _ in range(count)
    ]
