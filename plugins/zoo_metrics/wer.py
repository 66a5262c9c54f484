"""WER, by jiwer."""

import random
from collections.abc import Sequence
from importlib.metadata import version
from typing import ClassVar, Self

from zoo import Metric, MissingExtra
from zoo_metrics.edits import Edits, fewest
from zoo_metrics.texts import checked, nothing, random_texts


class WER(Metric):
    r"""Wrong, missing and surplus words, for each word of reference.

    .. math:: \mathrm{WER} = \frac{\sum_i S_i + D_i + I_i}{\sum_i |y_i|}

    S, D and I are the words replaced, deleted and inserted on the shortest way from reference to
    prediction; words are what stands between spaces. Lower is better; above 1 is possible.
    Paper: Woodard and Nelson 1982; computed by jiwer.
    A prediction is a text; its reference is a list of one or more texts. Of several references
    the one with the lowest rate counts, the first of equals.

    Args:
        lowercase: compare without case.

    Shapes:
        N texts, N lists of texts -> {wer: from 0 upward}.
    """

    name: ClassVar[str] = "wer"
    paper: ClassVar[str] = (
        "Woodard and Nelson 1982, An information theoretic measure of speech recognition "
        "performance"
    )

    def __init__(self, *, lowercase: bool = False) -> None:
        try:
            import jiwer
        except ImportError:
            raise MissingExtra("metric 'wer'", library="jiwer", extra="metrics") from None
        self.process = jiwer.process_words
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
        return {"wer": self.edits.rate}

    def signature(self) -> str:
        case = "lc" if self.lowercase else "mixed"
        return f"refs:closest|case:{case}|tok:spaces|jiwer:{version('jiwer')}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        import jiwer

        said = [self._cased(prediction) for prediction in predictions]
        closest = [
            min(map(self._cased, texts), key=lambda text: float(jiwer.wer(text, prediction)))
            for prediction, texts in zip(said, references, strict=True)
        ]
        return {"wer": float(jiwer.wer(closest, said))}

    def example(self, count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
        return random_texts(count, rng)
