"""TER, by sacrebleu."""

from collections.abc import Sequence
from typing import Any, ClassVar

from zoo.plugin import MissingExtra
from zoo_metrics.text_metric import CorpusMetric, transpose_references


class TER(CorpusMetric):
    r"""Edits that turn predictions into their closest references, for each word of reference.

    .. math:: \mathrm{TER} = 100 \cdot \frac{\sum_i \min_k \mathrm{edits}(\hat y_i, y_{ik})}
        {\sum_i \frac{1}{K_i} \sum_k |y_{ik}|}

    An edit inserts, deletes or replaces a word, or moves a run of words. Lower is better; above
    100 is possible. Paper: Snover et al. 2006, section 2; computed by sacrebleu as Tercom does.
    A prediction is a text; its reference is a list of one or more texts.

    Args:
        normalized: separate punctuation and decode entities, as Tercom's ``-N``.
        no_punct: leave punctuation out.
        asian_support: treat Chinese, Japanese and Korean by the character; matters only together
            with ``normalized`` or ``no_punct``.
        case_sensitive: compare with case.

    Shapes:
        N texts, N lists of texts -> {ter: from 0 upward, in percent}.
    """

    name: ClassVar[str] = "ter"
    paper: ClassVar[str] = (
        "Snover et al. 2006, A Study of Translation Edit Rate with Targeted Human Annotation"
    )

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
        self.options: dict[str, Any] = {
            "normalized": normalized,
            "no_punct": no_punct,
            "asian_support": asian_support,
            "case_sensitive": case_sensitive,
        }
        self.scorer: Any = SacreTER(**self.options)

    def compute(self) -> dict[str, float]:
        predictions, references = self.get_corpus()
        return {
            "ter": float(
                self.scorer.corpus_score(predictions, transpose_references(references)).score
            )
        }

    def signature(self) -> str:
        self.compute()  # sacrebleu knows its signature once it has seen the references
        return str(self.scorer.get_signature())

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        import sacrebleu

        score = sacrebleu.corpus_ter(
            list(predictions), transpose_references(references), **self.options
        )
        return {"ter": score.score}
