"""BLEU, computed with sacrebleu."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from zoo.plugin import MissingExtra
from zoo_metrics.sacrebleu_metric import SacrebleuMetric
from zoo_metrics.text_metric import count_ngrams

DEFAULT_ORDER = 4


class BLEU(SacrebleuMetric):
    r"""BLEU: corpus n-gram precision with a brevity penalty, in percent.

    .. math:: \mathrm{BLEU} = 100 \cdot \min(1, e^{1 - r/c}) \prod_{n=1}^{N} p_n^{1/N}

    Computed with sacrebleu (Post 2018) over the full corpus, with exponential smoothing of orders
    without a match. The method `reference` computes the formula on the tokens of sacrebleu.

    Paper: Papineni et al. 2002, sections 2.1 to 2.3.

    Args:
        tokenize: tokeniser of sacrebleu.
        lowercase: compare in lower case.
        max_order: maximum n-gram order N.

    Shapes:
        N predictions, N lists of references -> {bleu: from 0 to 100}.
    """

    name: ClassVar[str] = "bleu"
    paper: ClassVar[str] = (
        "Papineni et al. 2002, BLEU: a Method for Automatic Evaluation of Machine Translation"
    )

    def __init__(
        self,
        *,
        tokenize: Literal["13a", "intl", "char", "none"] = "13a",
        lowercase: bool = False,
        max_order: Annotated[int, Field(ge=1, le=64)] = DEFAULT_ORDER,
    ) -> None:
        super().__init__()
        try:
            from sacrebleu.metrics.bleu import BLEU as SacreBLEU
        except ImportError:
            raise MissingExtra("metric 'bleu'", library="sacrebleu", extra="metrics") from None
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.max_order = max_order
        self.scorer = SacreBLEU(tokenize=tokenize, lowercase=lowercase, max_ngram_order=max_order)
        if max_order != DEFAULT_ORDER:
            self.signature_prefix = f"order:{max_order}|"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        orders = range(1, self.max_order + 1)
        matches, totals = dict.fromkeys(orders, 0), dict.fromkeys(orders, 0)
        c = r = 0
        for prediction, texts in zip(predictions, references, strict=True):
            tokens, targets = self._tokens(prediction), [self._tokens(text) for text in texts]
            c += len(tokens)
            r += min(map(len, targets), key=lambda length: (abs(length - len(tokens)), length))
            for n in orders:
                counts, max_counts = count_ngrams(tokens, n), Counter[tuple[str, ...]]()
                for target in targets:
                    max_counts |= count_ngrams(target, n)
                matches[n] += (counts & max_counts).total()
                totals[n] += counts.total()
        if not any(matches.values()) or not all(totals.values()):
            return {"bleu": 0.0}
        product, pseudo_count = 1.0, 1.0
        for n in orders:
            if matches[n] == 0:  # half a match for the first such order, then a quarter, ...
                pseudo_count /= 2
            product *= (matches[n] or pseudo_count) / totals[n]
        return {"bleu": 100 * min(1.0, math.exp(1 - r / c)) * product ** (1 / self.max_order)}

    def _tokens(self, text: str) -> list[str]:
        tokenized: str = self.scorer.tokenizer((text.lower() if self.lowercase else text).rstrip())
        return tokenized.split()
