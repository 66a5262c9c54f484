"""Exact match."""

import random
from collections.abc import Sequence
from typing import ClassVar, Self

from zoo_metrics.text_metric import TextMetric, no_texts_error, split_words, validate_texts


class ExactMatch(TextMetric):
    r"""Exact match: share of predicted texts that equal one of their references.

    .. math:: \frac{1}{N} \sum_i [\hat y_i \in Y_i]

    Y_i are the references of item i, such as the pronunciations of a word. Texts are compared after
    splitting them at white space.

    Paper: Rajpurkar et al. 2016, section 6.1.

    Args:
        lowercase: compare in lower case.

    Shapes:
        N predictions, N lists of references -> {exact-match: from 0 to 1}.
    """

    name: ClassVar[str] = "exact-match"
    paper: ClassVar[str] = (
        "Rajpurkar et al. 2016, SQuAD: 100,000+ Questions for Machine Comprehension of Text, "
        "arXiv:1606.05250"
    )

    def __init__(self, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase
        self.correct = 0
        self.count = 0

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for prediction, texts in validate_texts(self.name, predictions, references):
            words = split_words(prediction, lowercase=self.lowercase)
            found = (split_words(text, lowercase=self.lowercase) for text in texts)
            self.correct += any(words == reference for reference in found)
            self.count += 1

    def merge(self, other: Self) -> None:
        self.correct += other.correct
        self.count += other.count

    def compute(self) -> dict[str, float]:
        if not self.count:
            raise no_texts_error(self.name)
        return {self.name: self.correct / self.count}

    def signature(self) -> str:
        case = "lc" if self.lowercase else "mixed"
        return f"exact-match|refs:any|case:{case}|tok:spaces|version:1"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        def joined(text: str) -> str:
            return " ".join(text.split()).lower() if self.lowercase else " ".join(text.split())

        wrong = [
            joined(prediction) not in {joined(text) for text in texts}
            for prediction, texts in zip(predictions, references, strict=True)
        ]
        return {self.name: 1 - sum(wrong) / len(wrong)}

    def example(self, count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
        texts = ["a", "A", "a b", "a  b"]
        predictions = rng.choices(texts, k=count)
        return predictions, [rng.choices(texts, k=rng.randint(1, 2)) for _ in predictions]
