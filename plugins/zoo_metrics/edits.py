"""What WER and CER share: edits counted by jiwer, against the closest of several references."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, ClassVar, Self

from zoo.plugin import MissingExtra
from zoo_metrics.texts import TextMetric, checked, nothing


@dataclass
class Edits:
    """How many edits were needed, and how many units (words or characters) were wanted."""

    wrong: int = 0
    wanted: int = 0

    def add(self, other: Self) -> None:
        self.wrong += other.wrong
        self.wanted += other.wanted

    @property
    def rate(self) -> float:
        """As in jiwer, edits count by themselves where nothing was wanted."""
        return self.wrong / self.wanted if self.wanted else float(self.wrong)


class EditRate(TextMetric):
    """An error rate of jiwer, which has a function of the metric's name and one that counts."""

    counts: ClassVar[str]
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
        self.edits = Edits()
        self.count = 0

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for prediction, texts in checked(self.name, predictions, references):
            self.edits.add(self._fewest([self._cased(t) for t in texts], self._cased(prediction)))
            self.count += 1

    def merge(self, other: Self) -> None:
        self.edits.add(other.edits)
        self.count += other.count

    def compute(self) -> dict[str, float]:
        if self.count == 0:
            raise nothing(self.name)
        return {self.name: self.edits.rate}

    def signature(self) -> str:
        case = "lc" if self.lowercase else "mixed"
        return f"refs:closest|case:{case}|tok:{self.unit}|jiwer:{version('jiwer')}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        rate = getattr(self.library, self.name)
        said = [self._cased(prediction) for prediction in predictions]
        closest = [
            min(map(self._cased, texts), key=lambda text: float(rate(text, prediction)))
            for prediction, texts in zip(said, references, strict=True)
        ]
        return {self.name: float(rate(closest, said))}

    def _cased(self, text: str) -> str:
        return text.lower() if self.lowercase else text

    def _fewest(self, texts: Sequence[str], prediction: str) -> Edits:
        """The edits against the reference with the lowest rate; the first one, if there are two."""
        found = [getattr(self.library, self.counts)(text, prediction) for text in texts]
        return min(
            (
                Edits(
                    wrong=one.substitutions + one.deletions + one.insertions,
                    wanted=one.hits + one.substitutions + one.deletions,
                )
                for one in found
            ),
            key=lambda edits: edits.rate,
        )
