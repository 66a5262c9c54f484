"""RIBES, computed with nltk."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, ClassVar

from pydantic import Field

from zoo import ZooError
from zoo.plugin import MissingExtra
from zoo_metrics.mean_metric import MeanMetric
from zoo_metrics.text_metric import count_ngrams, split_words


class RIBES(MeanMetric):
    r"""RIBES: rank correlation of the order of words common to prediction and reference.

    .. math:: \mathrm{RIBES} = \frac{\tau + 1}{2} \cdot P_1^\alpha \cdot
        \min(1, e^{1 - |y| / |\hat y|})^\beta

    tau is Kendall's rank correlation of the aligned words, P_1 their share of the prediction. The
    value is the mean over the predictions, each with its best reference. Texts are split at
    whitespace. Computed with nltk, whose alignment lacks some refinements of the authors' script.
    The method `reference` computes the formula with the same alignment, without nltk.

    Paper: Isozaki et al. 2010, section 3.

    Args:
        alpha: exponent of the share of aligned words.
        beta: exponent of the brevity penalty.
        lowercase: compare in lower case.

    Shapes:
        N predictions, N lists of references -> {ribes: from 0 to 1}.
    """

    name: ClassVar[str] = "ribes"
    paper: ClassVar[str] = (
        "Isozaki et al. 2010, Automatic Evaluation of Translation Quality for Distant Language "
        "Pairs"
    )

    def __init__(
        self,
        *,
        alpha: Annotated[float, Field(ge=0)] = 0.25,
        beta: Annotated[float, Field(ge=0)] = 0.10,
        lowercase: bool = False,
    ) -> None:
        super().__init__()
        try:
            import nltk.translate.ribes_score  # noqa: F401
        except ImportError:
            raise MissingExtra("metric 'ribes'", library="nltk", extra="metrics") from None
        self.alpha = alpha
        self.beta = beta
        self.lowercase = lowercase

    def score(self, prediction: str, texts: Sequence[str]) -> dict[str, float]:
        from nltk.translate import ribes_score

        max_length = ribes_score.MAX_ALIGNMENT_LEN
        words, *targets = (split_words(t, lowercase=self.lowercase) for t in (prediction, *texts))
        longest = max(map(len, [words, *targets]))
        if longest > max_length:
            raise ZooError(f"ribes: a text has {longest} words, but the maximum is {max_length}")
        score = ribes_score.sentence_ribes(targets, words, self.alpha, self.beta)
        return {"ribes": float(score)}

    def signature(self) -> str:
        import nltk

        case = "lc" if self.lowercase else "mixed"
        weights = f"alpha:{self.alpha}|beta:{self.beta}"
        return f"refs:best|{weights}|case:{case}|tok:spaces|nltk:{nltk.__version__}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        best = []
        for prediction, texts in zip(predictions, references, strict=True):
            words, *targets = (
                split_words(t, lowercase=self.lowercase) for t in (prediction, *texts)
            )
            best.append(max(self._formula(words, target) for target in targets) if words else 0.0)
        return {"ribes": sum(best) / len(best)}

    def _formula(self, words: list[str], target: list[str]) -> float:
        positions = _align(words, target)
        if len(positions) < 2:
            return 0.0
        pairs = list(combinations(positions, 2))
        increasing = sum(a < b for a, b in pairs) / len(pairs)  # (tau + 1) / 2
        precision = len(positions) / len(words)
        brevity = min(1.0, math.exp(1 - len(target) / len(words)))
        score: float = increasing * precision**self.alpha * brevity**self.beta
        return score


def _align(words: list[str], target: list[str]) -> list[int]:
    """Return the target positions of the words that can be aligned.

    A word is aligned if it is unique in both texts together with w words on its right or left, for
    the smallest such w.
    """
    positions = []
    for i in range(len(words)):
        for w in range(max(i, len(words) - i + 1)):
            contexts = [(words[i : i + w + 1], 0)] if i + w < len(words) else []
            contexts += [(words[i - w : i + 1], w)] if w <= i else []
            unique = [
                _find(context, target) + offset
                for context, offset in contexts
                if _count(context, words) == _count(context, target) == 1
            ]
            if unique:
                positions.append(unique[0])
                break
    return positions


def _count(context: list[str], words: list[str]) -> int:
    return count_ngrams(words, len(context))[tuple(context)]


def _find(context: list[str], words: list[str]) -> int:
    n = len(context)
    return next(i for i in range(len(words)) if words[i : i + n] == context)
