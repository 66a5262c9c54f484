"""Base class of WER and CER: edits to the closest reference, counted by jiwer."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import ClassVar, Self

from zoo.plugin import MissingExtra
from zoo_metrics.text_metric import TextMetric, no_texts_error, validate_texts


@dataclass
class EditCounts:
    """Number of edits and number of reference units (words or characters)."""

    errors: int = 0
    reference_length: int = 0

    def add(self, other: Self) -> None:
        self.errors += other.errors
        self.reference_length += other.reference_length

    @property
    def rate(self) -> float:
        """Edits per unit; for an empty reference the number of edits, as in jiwer."""
        return self.errors / self.reference_length if self.reference_length else float(self.errors)


class EditRate(TextMetric):
    """Error rate against the reference with the lowest rate.

    Edits are counted by jiwer. The method `reference` computes the Levenshtein distance
    without jiwer.
    """

    lower_is_better: ClassVar[bool] = True
    jiwer_function: ClassVar[str]
    """Function of jiwer that counts the edits."""
    tokenization: ClassVar[str]
    """How texts are split into units, for the signature."""

    def __init__(self, *, lowercase: bool = False) -> None:
        try:
            import jiwer  # noqa: F401
        except ImportError:
            what = f"metric '{self.name}'"
            raise MissingExtra(what, library="jiwer", extra="metrics") from None
        self.lowercase = lowercase
        self.edits = EditCounts()
        self.count = 0

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """Split a text into units as jiwer does."""

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for prediction, texts in validate_texts(self.name, predictions, references):
            prediction = self._apply_case(prediction)
            counts = [self._count_edits(self._apply_case(text), prediction) for text in texts]
            self.edits.add(_lowest_rate(counts))
            self.count += 1

    def merge(self, other: Self) -> None:
        self.edits.add(other.edits)
        self.count += other.count

    def compute(self) -> dict[str, float]:
        if self.count == 0:
            raise no_texts_error(self.name)
        return {self.name: self.edits.rate}

    def signature(self) -> str:
        case = "lc" if self.lowercase else "mixed"
        return f"refs:closest|case:{case}|tok:{self.tokenization}|jiwer:{version('jiwer')}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        total = EditCounts()
        for prediction, texts in zip(predictions, references, strict=True):
            units = self.split(self._apply_case(prediction))
            targets = [self.split(self._apply_case(text)) for text in texts]
            total.add(_lowest_rate([EditCounts(levenshtein(units, t), len(t)) for t in targets]))
        return {self.name: total.rate}

    def _apply_case(self, text: str) -> str:
        return text.lower() if self.lowercase else text

    def _count_edits(self, text: str, prediction: str) -> EditCounts:
        import jiwer

        measure = getattr(jiwer, self.jiwer_function)(text, prediction)
        return EditCounts(
            errors=measure.substitutions + measure.deletions + measure.insertions,
            reference_length=measure.hits + measure.substitutions + measure.deletions,
        )


def _lowest_rate(counts: Sequence[EditCounts]) -> EditCounts:
    """Return the counts with the lowest rate, the first of equal ones."""
    return min(counts, key=lambda edits: edits.rate)


def levenshtein(a: Sequence[str], b: Sequence[str]) -> int:
    """Compute the minimum number of insertions, deletions and substitutions."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]
