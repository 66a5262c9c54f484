"""chrF and chrF++, by sacrebleu."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from zoo.plugin import MissingExtra
from zoo_metrics.text_metric import CorpusMetric, transpose_references

DEFAULT_BETA = 2


class ChrF(CorpusMetric):
    r"""F-score of character n-grams over a corpus, in which recall counts more than precision.

    .. math:: \mathrm{chrF}_\beta = 100 \cdot (1 + \beta^2)
        \frac{\mathrm{chrP} \cdot \mathrm{chrR}}{\beta^2 \, \mathrm{chrP} + \mathrm{chrR}}

    chrP and chrR are precision and recall of n-grams, averaged over the orders that occur.
    Paper: Popović 2015, eq. 1; with words, Popović 2017. Computed by sacrebleu over the whole
    corpus, which takes the best reference for each prediction. The defaults are chrF2;
    ``word_order=2`` makes it chrF++.
    A prediction is a text; its reference is a list of one or more texts.

    Args:
        char_order: the longest n-grams of characters.
        word_order: the longest n-grams of words; 0 for none.
        beta: how many times more recall counts than precision.
        lowercase: compare without case.
        whitespace: let spaces count as characters.

    Shapes:
        N texts, N lists of texts -> {chrf: from 0 to 100}.
    """

    name: ClassVar[str] = "chrf"
    paper: ClassVar[str] = (
        "Popović 2015, chrF: character n-gram F-score for automatic MT evaluation"
    )

    def __init__(
        self,
        *,
        char_order: Annotated[int, Field(ge=1)] = 6,
        word_order: Annotated[int, Field(ge=0)] = 0,
        beta: Annotated[int, Field(ge=1)] = DEFAULT_BETA,
        lowercase: bool = False,
        whitespace: bool = False,
    ) -> None:
        super().__init__()
        try:
            from sacrebleu.metrics.chrf import CHRF
        except ImportError:
            raise MissingExtra("metric 'chrf'", library="sacrebleu", extra="metrics") from None
        self.char_order = char_order
        self.word_order = word_order
        self.beta = beta
        self.lowercase = lowercase
        self.whitespace = whitespace
        self.scorer: Any = CHRF(
            char_order=char_order,
            word_order=word_order,
            beta=beta,
            lowercase=lowercase,
            whitespace=whitespace,
        )

    def compute(self) -> dict[str, float]:
        predictions, references = self.get_corpus()
        return {
            "chrf": float(
                self.scorer.corpus_score(predictions, transpose_references(references)).score
            )
        }

    def signature(self) -> str:
        self.compute()  # sacrebleu knows its signature once it has seen the references
        # sacrebleu's own signature does not tell beta.
        beta = "" if self.beta == DEFAULT_BETA else f"beta:{self.beta}|"
        return f"{beta}{self.scorer.get_signature()}"

    def reference(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, float]:
        import sacrebleu

        def apply_case(text: str) -> str:
            return text.lower() if self.lowercase else text

        score = sacrebleu.corpus_chrf(
            [apply_case(prediction) for prediction in predictions],
            transpose_references([[apply_case(text) for text in texts] for texts in references]),
            char_order=self.char_order,
            word_order=self.word_order,
            beta=self.beta,
            remove_whitespace=not self.whitespace,
        )
        return {"chrf": score.score}
