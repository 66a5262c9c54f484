"""TER, computed with sacrebleu."""

from collections.abc import Sequence
from typing import ClassVar

from zoo.plugin import MissingExtra
from zoo_metrics.sacrebleu_metric import SacrebleuMetric
from zoo_metrics.tercom import count_edits


class TER(SacrebleuMetric):
    r"""TER: edits to the closest reference per reference word, in percent.

    .. math:: \mathrm{TER} = 100 \cdot \frac{\sum_i \min_k \mathrm{edits}(\hat y_i, y_{ik})}
        {\sum_i \frac{1}{K_i} \sum_k |y_{ik}|}

    An edit inserts, deletes or substitutes a word, or shifts a sequence of words. Lower is better;
    values above 100 are possible. Computed with sacrebleu, which follows Tercom. The method
    `reference` runs the greedy search of the paper on the tokens of sacrebleu.

    Paper: Snover et al. 2006, section 2.

    Args:
        normalized: separate punctuation and decode entities, as option ``-N`` of Tercom.
        no_punct: remove punctuation.
        asian_support: split Chinese, Japanese and Korean text into characters; has an effect only
            with ``normalized`` or ``no_punct``.
        case_sensitive: compare with case.

    Shapes:
        N predictions, N lists of references -> {ter: at least 0, in percent}.
    """

    name: ClassVar[str] = "ter"
    paper: ClassVar[str] = (
        "Snover et al. 2006, A Study of Translation Edit Rate with Targeted Human Annotation"
    )
    lower_is_better: ClassVar[bool] = True

    def __init__(
        self,
        *,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool = False,
        case_sensitive: bool = False,
    ) -> None:
        super().__init__()
        try:
            from sacrebleu.metrics.ter import TER as SacreTER
        except ImportError:
            raise MissingExtra("metric 'ter'", library="sacrebleu", extra="metrics") from None
        self.scorer = SacreTER(
            normalized=normalized,
            no_punct=no_punct,
            asian_support=asian_support,
            case_sensitive=case_sensitive,
        )

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        edits, length = 0, 0.0
        for prediction, texts in zip(predictions, references, strict=True):
            targets = [self._tokens(text) for text in texts]
            edits += min(count_edits(self._tokens(prediction), target) for target in targets)
            length += sum(map(len, targets)) / len(targets)
        if length == 0:
            return {"ter": 100.0 if edits else 0.0}
        return {"ter": 100 * edits / length}

    def _tokens(self, text: str) -> list[str]:
        tokenized: str = self.scorer.tokenizer(text.rstrip())
        return tokenized.split()
