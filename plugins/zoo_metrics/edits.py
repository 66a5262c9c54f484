"""What WER and CER share: edits counted by jiwer, against the closest of several references."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self


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


def fewest(process: Callable[[str, str], Any], texts: Sequence[str], prediction: str) -> Edits:
    """The edits against the reference with the lowest rate; the first one, if there are two."""
    found = [process(text, prediction) for text in texts]
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
