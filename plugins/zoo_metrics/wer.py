"""WER, by jiwer."""

from typing import ClassVar

from zoo_metrics.edit_rate import EditRate


class WER(EditRate):
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
    jiwer_function: ClassVar[str] = "process_words"
    unit: ClassVar[str] = "spaces"
