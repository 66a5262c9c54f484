"""BLEU, by sacrebleu."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from zoo.plugin import MissingExtra
from zoo_metrics.text_metric import CorpusMetric, transpose_references

DEFAULT_ORDER = 4


class BLEU(CorpusMetric):
    r"""N-gram precision of a corpus against its references, with a penalty for brevity.

    .. math:: \mathrm{BLEU} = 100 \cdot \min(1, e^{1 - r/c}) \prod_{n=1}^{N} p_n^{1/N}

    Paper: Papineni et al. 2002; computed by sacrebleu (Post 2018) over the whole corpus, which
    smooths an order of n-grams without a match.
    A prediction is a text; its reference is a list of one or more texts.

    Args:
        tokenize: sacrebleu's tokeniser.
        lowercase: compare without case.
        max_order: N, the longest n-grams that count.

    Shapes:
        N texts, N lists of texts -> {bleu: from 0 to 100}.
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
        max_order: Annotated[int, Field(ge=1)] = DEFAULT_ORDER,
    ) -> None:
        super().__init__()
        try:
            from sacrebleu.metrics.bleu import BLEU as SacreBLEU
        except ImportError:
            raise MissingExtra("metric 'bleu'", library="sacrebleu", extra="metrics") from None
        self.tokenize = tokenize
        self.lowercase = lowercase
        self.max_order = max_order
        self.scorer: Any = SacreBLEU(
            tokenize=tokenize, lowercase=lowercase, max_ngram_order=max_order
        )

    def compute(self) -> dict[str, float]:
        predictions, references = self.get_corpus()
        return {
            "bleu": float(
                self.scorer.corpus_score(predictions, transpose_references(references)).score
            )
        }

    def signature(self) -> str:
        self.compute()  # sacrebleu knows its signature once it has seen the references
        # sacrebleu's own signature does not tell the order.
        order = "" if self.max_order == DEFAULT_ORDER else f"order:{self.max_order}|"
        return f"{order}{self.scorer.get_signature()}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        import sacrebleu

        metric = sacrebleu.BLEU(
            tokenize=self.tokenize, lowercase=self.lowercase, max_ngram_order=self.max_order
        )
        return {
            "bleu": metric.corpus_score(list(predictions), transpose_references(references)).score
        }
