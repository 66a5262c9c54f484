"""What WER and CER share: edits counted by jiwer, against the closest of several references."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, ClassVar, Self

from zoo.plugin import MissingExtra
from zoo_metrics.text_metric import TextMetric, no_texts_error, validate_texts


@dataclass
class EditCounts:
    """How many edits were needed, and how many units (words or characters) were wanted."""

    errors: int = 0
    reference_length: int = 0

    def add(self, other: Self) -> None:
        self.errors += other.errors
        self.reference_length += other.reference_length

    @property
    def rate(self) -> float:
        """As in jiwer, edits count by themselves where nothing was wanted."""
        return self.errors / self.reference_length if self.reference_length else float(self.errors)


class EditRate(TextMetric):
    """An error rate of jiwer, which has a function of the metric's name and one that counts."""

    jiwer_function: ClassVar[str]
    """The function of jiwer that counts the edits."""
    unit: ClassVar[str]
    """What is counted, for the signature."""

    def __init__(self, *, lowercase: bool = False) -> None:
        try:
            import jiwer
        except ImportError:
            what = f"metric '{self.name}'"
            raise MissingExtra(what, library="jiwer", extra="metrics") from None
        self.library: Any = jiwer
        self.lowercase = lowercase
        self.edits = EditCounts()
        self.count = 0

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for prediction, texts in validate_texts(self.name, predictions, references):
            self.edits.add(
                self._closest_edits(
                    [self._apply_case(t) for t in texts], self._apply_case(prediction)
                )
            )
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
        return f"refs:closest|case:{case}|tok:{self.unit}|jiwer:{version('jiwer')}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        rate = getattr(self.library, self.name)
        hypotheses = [self._apply_case(prediction) for prediction in predictions]
        closest = [
            min(map(self._apply_case, texts), key=lambda text: float(rate(text, prediction)))
            for prediction, texts in zip(hypotheses, references, strict=True)
        ]
        return {self.name: float(rate(closest, hypotheses))}

    def _apply_case(self, text: str) -> str:
        return text.lower() if self.lowercase else text

    def _closest_edits(self, texts: Sequence[str], prediction: str) -> EditCounts:
        """The edits against the reference with the lowest rate; the first one, if there are two."""
        measures = [getattr(self.library, self.jiwer_function)(text, prediction) for text in texts]
        return min(
            (
                EditCounts(
                    errors=one.substitutions + one.deletions + one.insertions,
                    reference_length=one.hits + one.substitutions + one.deletions,
                )
                for one in measures
            ),
            key=lambda edits: edits.rate,
        )
