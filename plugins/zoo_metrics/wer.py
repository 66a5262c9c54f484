"""Word error rate (WER), computed with jiwer."""

import re
from typing import ClassVar

from zoo_metrics.edit_rate import EditRate


class WER(EditRate):
    r"""WER: word error rate, edits per reference word.

    .. math:: \mathrm{WER} = \frac{\sum_i (S_i + D_i + I_i)}{\sum_i |y_i|}

    y_i are the words of reference i; S, D and I are the substitutions, deletions and insertions of
    the minimum edit distance. Texts are split at spaces. Lower is better; values above 1 are
    possible. Of several references, the one with the lowest rate is used. Computed with jiwer; the
    method `reference` computes the Levenshtein distance without jiwer.

    Paper: Woodard and Nelson 1982.

    Args:
        lowercase: compare in lower case.

    Shapes:
        N predictions, N lists of references -> {wer: at least 0}.
    """

    name: ClassVar[str] = "wer"
    paper: ClassVar[str] = (
        "Woodard and Nelson 1982, An information theoretic measure of speech recognition "
        "performance"
    )
    jiwer_function: ClassVar[str] = "process_words"
    tokenization: ClassVar[str] = "spaces"

    def split(self, text: str) -> list[str]:
        return [word for word in re.sub(r"\s\s+", " ", text).strip().split(" ") if word]
