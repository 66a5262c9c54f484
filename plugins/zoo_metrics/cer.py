"""CER, by jiwer."""

import random
from collections.abc import Sequence
from importlib.metadata import version
from typing import ClassVar, Self

from zoo import Metric, MissingExtra
from zoo_metrics.edits import Edits, fewest
from zoo_metrics.texts import checked, nothing, random_texts


class CER(Metric):
    r"""Wrong, missing and surplus characters, for each character of reference.

    .. math:: \mathrm{CER} = \frac{\sum_i S_i + D_i + I_i}{\sum_i |y_i|}

    S, D and I are the characters replaced, deleted and inserted on the shortest way from
    reference to prediction; spaces count, except at the ends. Lower is better; above 1 is
    possible. Paper: Morris, Maier and Green 2004, on such rates; computed by jiwer.
    A prediction is a text; its reference is a list of one or more texts. Of several references
    the one with the lowest rate counts, the first of equals.

    Args:
        lowercase: compare without case.

    Shapes:
        N texts, N lists of texts -> {cer: from 0 upward}.
    """

    name: ClassVar[str] = "cer"
    paper: ClassVar[str] = (
        "Morris, Maier and Green 2004, From WER and RIL to MER and WIL: improved evaluation "
        "measures for connected speech recognition"
    )

    def __init__(self, *, lowercase: bool = False) -> None:
        try:
            import jiwer
        except ImportError:
            raise MissingExtra("metric 'cer'", library="jiwer", extra="metrics") from None
        self.process = jiwer.process_characters
        self.lowercase = lowercase
        self.edits = Edits()
        self.count = 0

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for prediction, texts in checked(self.name, predictions, references):
            wanted = [self._cased(text) for text in texts]
            self.edits.add(fewest(self.process, wanted, self._cased(prediction)))
            self.count += 1

    def _cased(self, text: str) -> str:
        return text.lower() if self.lowercase else text

    def merge(self, other: Self) -> None:
        self.edits.add(other.edits)
        self.count += other.count

    def compute(self) -> dict[str, float]:
        if self.count == 0:
            raise nothing(self.name)
        return {"cer": self.edits.rate}

    def signature(self) -> str:
        case = "lc" if self.lowercase else "mixed"
        return f"refs:closest|case:{case}|tok:characters|jiwer:{version('jiwer')}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        import jiwer

        said = [self._cased(prediction) for prediction in predictions]
        closest = [
            min(map(self._cased, texts), key=lambda text: float(jiwer.cer(text, prediction)))
            for prediction, texts in zip(said, references, strict=True)
        ]
        return {"cer": float(jiwer.cer(closest, said))}

    def example(self, count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
        return random_texts(count, rng)
