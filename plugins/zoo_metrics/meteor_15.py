"""METEOR 1.5 with exact words and stems."""

import random
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from itertools import product
from typing import Annotated, ClassVar, Self

from pydantic import Field

from zoo.plugin import MissingExtra
from zoo_metrics.meteor_alignment import EXACT, STEM, align
from zoo_metrics.text_metric import (
    TextMetric,
    no_texts_error,
    split_words,
    validate_texts,
)

# Words with a relative frequency above 0.001 in the corpora of the METEOR program.
FUNCTION_WORDS = frozenset(
    """
    the , . to of and a in that for " is on 's it with was as said at he by be from have has are his
    but an this not i will ’ they ) -rrb- ( -lrb- who their had we which were been more or s its
    would about new one after you : also up when there than $ all out her people she year two - can
    if last first “ over other ” into some what so -- no time years could ? 't — '
    """.split()  # noqa: SIM905
)


@dataclass
class _Counts:
    """Sums over texts. Lengths and the first two numbers of matches are weighted."""

    prediction_length: float = 0.0
    reference_length: float = 0.0
    prediction_matches: float = 0.0
    reference_matches: float = 0.0
    matches: int = 0
    chunks: int = 0

    def __add__(self, other: "_Counts") -> "_Counts":
        return _Counts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


class METEOR15(TextMetric):
    r"""METEOR 1.5 with exact words and stems: weighted F-score of aligned words, times a penalty.

    .. math:: \mathrm{METEOR} =
        \left(1 - \gamma \left(\frac{c}{m}\right)^\beta\right)
        \frac{P R}{\alpha P + (1 - \alpha) R}, \quad
        P = \frac{\sum_i w_i (\delta m_i^c + (1 - \delta) m_i^f)}{\delta |\hat y^c| +
        (1 - \delta) |\hat y^f|}

    m words are aligned in c chunks that are contiguous in both texts (c is 0 if the texts match in
    one chunk); matcher i (exact, stem) with weight w_i aligns m_i^c content and m_i^f function
    words; R is P with the words of the reference. Each prediction is scored with its best
    reference; counts are summed over the corpus, not scores. Parameters and function words are
    those for English. The matchers of the program for synonyms and paraphrases need its data files
    and are not used. Texts are lower-cased and split at whitespace: tokenise captions first to
    compare with published values. Implemented here; equal to the authors' program with
    ``-m "exact stem"`` on recorded texts. `meteor-2005` is the metric of nltk.

    Paper: Denkowski and Lavie 2014, section 2.

    Args:
        alpha: weight of recall relative to precision.
        beta: exponent of the fragmentation penalty.
        gamma: maximum fragmentation penalty.
        delta: weight of content words relative to function words.
        stem_weight: weight of words that match by stem.

    Shapes:
        N predictions, N lists of references -> {meteor-1.5: from 0 to 1}.
    """

    name: ClassVar[str] = "meteor-1.5"
    paper: ClassVar[str] = (
        "Denkowski and Lavie 2014, Meteor Universal: Language Specific Translation Evaluation for "
        "Any Target Language"
    )

    def __init__(
        self,
        *,
        alpha: Annotated[float, Field(ge=0, le=1)] = 0.85,
        beta: Annotated[float, Field(ge=0)] = 0.2,
        gamma: Annotated[float, Field(ge=0, le=1)] = 0.6,
        delta: Annotated[float, Field(gt=0, lt=1)] = 0.75,
        stem_weight: Annotated[float, Field(ge=0, le=1)] = 0.6,
    ) -> None:
        super().__init__()
        try:
            from nltk.stem.snowball import SnowballStemmer
        except ImportError:
            raise MissingExtra("metric 'meteor-1.5'", library="nltk", extra="metrics") from None
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.delta = delta
        self.stem_weight = stem_weight
        self.stem: Callable[[str], str] = SnowballStemmer("english").stem
        self.counts = _Counts()
        self.texts = 0

    def update(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for prediction, texts in validate_texts(self.name, predictions, references):
            words, *targets = (split_words(text, lowercase=True) for text in (prediction, *texts))
            counts = [self._count(words, target) for target in targets]
            self.counts += max(counts, key=self._score)
            self.texts += 1

    def merge(self, other: Self) -> None:
        self.counts += other.counts
        self.texts += other.texts

    def compute(self) -> dict[str, float]:
        if not self.texts:
            raise no_texts_error(self.name)
        return {self.name: self._score(self.counts)}

    def _count(self, words: list[str], target: list[str]) -> _Counts:
        matches, chunks = align(words, target, self.stem)
        if len(matches) == len(words) == len(target) and chunks == 1:
            chunks = 0
        weights = {EXACT: 1.0, STEM: self.stem_weight}
        return _Counts(
            sum(map(self._weight, words)),
            sum(map(self._weight, target)),
            sum(weights[m.matcher] * self._weight(words[m.hypothesis]) for m in matches),
            sum(weights[m.matcher] * self._weight(target[m.reference]) for m in matches),
            len(matches),
            chunks,
        )

    def _weight(self, word: str) -> float:
        return 1 - self.delta if word in FUNCTION_WORDS else self.delta

    def _score(self, counts: _Counts) -> float:
        if counts.prediction_matches == 0 or counts.reference_matches == 0:
            return 0.0
        P = counts.prediction_matches / counts.prediction_length
        R = counts.reference_matches / counts.reference_length
        penalty: float = self.gamma * (counts.chunks / counts.matches) ** self.beta
        return (1 - penalty) * P * R / (self.alpha * P + (1 - self.alpha) * R)

    def signature(self) -> str:
        import nltk

        parameters = f"alpha:{self.alpha}|beta:{self.beta}|gamma:{self.gamma}|delta:{self.delta}"
        matchers = f"matchers:exact,snowball={self.stem_weight}|nltk:{nltk.__version__}"
        return f"meteor-1.5|refs:best|corpus|{parameters}|case:lc|tok:spaces|{matchers}|version:1"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        """Compute the value with the best of all alignments, without a beam."""
        total = _Counts()
        for prediction, texts in zip(predictions, references, strict=True):
            candidates = []
            for text in texts:
                words, target = prediction.lower().split(), text.lower().split()
                pairs = self._best_alignment(words, target)
                chunks = sum((i - 1, j - 1) not in pairs for i, j in pairs)
                full = len(pairs) == len(words) == len(target) and chunks == 1
                weight = {
                    (i, j): 1.0 if words[i] == target[j] else self.stem_weight for i, j in pairs
                }
                candidates.append(
                    _Counts(
                        sum(self._weight(word) for word in words),
                        sum(self._weight(word) for word in target),
                        sum(weight[i, j] * self._weight(words[i]) for i, j in pairs),
                        sum(weight[i, j] * self._weight(target[j]) for i, j in pairs),
                        len(pairs),
                        0 if full else chunks,
                    )
                )
            total += max(candidates, key=self._score)
        return {self.name: self._score(total)}

    def _best_alignment(self, words: list[str], target: list[str]) -> set[tuple[int, int]]:
        """Return the best of all alignments, as (prediction, reference) positions."""
        options = [
            [i for i, w in enumerate(words) if w == word or self.stem(w) == self.stem(word)]
            for word in target
        ]
        alone = [
            len(positions) == 1 and sum(positions[0] in other for other in options) == 1
            for positions in options
        ]
        choices = [
            positions if only else [*positions, None]
            for positions, only in zip(options, alone, strict=True)
        ]

        def rank(pairs: set[tuple[int, int]]) -> tuple[int, int, int]:
            exact = sum(words[i] == target[j] for i, j in pairs)
            chunks = sum((i - 1, j - 1) not in pairs for i, j in pairs)
            return -exact, chunks, sum(abs(i - j) for i, j in pairs)

        alignments = (
            {(i, j) for j, i in enumerate(choice) if i is not None}
            for choice in product(*choices)
            if len(set(choice) - {None}) == len(choice) - choice.count(None)
        )
        return min(alignments, key=rank)

    def example(self, count: int, rng: random.Random) -> tuple[list[str], list[list[str]]]:
        """Return texts in which a word occurs once; ties depend on the order of the search."""
        words = ["a", "cat", "sat", "on", "the", "mat", "and", "saw", "two", "dogs"]

        def text(dogs: str) -> str:
            return " ".join(rng.sample([*words[:-1], dogs], k=rng.randint(2, 9)))

        return [text("dogs") for _ in range(count)], [
            [text("dog") for _ in range(rng.randint(1, 3))] for _ in range(count)
        ]
