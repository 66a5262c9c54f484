"""CER, by jiwer."""

from typing import ClassVar

from zoo_metrics.edit_rate import EditRate


class CER(EditRate):
    r"""Wrong, missing and surplus characters, for each character of reference.

    .. math:: \mathrm{CER} = \frac{\sum_i S_i + D_i + I_i}{\sum_i |y_i|}

    S, D and I are the characters replaced, deleted and inserted on the shortest way from
    reference to prediction; spaces count, except at the ends. Lower is better; above 1 is
    possible. Paper: Morris, Maier and Green 2004, on such rates; computed by jiwer.
    A prediction is a text; its reference is a list of one or more texts. Of several references
    the one with the lowest rate counts, the first of equals.

    Args:
        lowercase: compare without case.

    Shapes:
        N texts, N lists of texts -> {cer: from 0 upward}.
    """

    name: ClassVar[str] = "cer"
    paper: ClassVar[str] = (
        "Morris, Maier and Green 2004, From WER and RIL to MER and WIL: improved evaluation "
        "measures for connected speech recognition"
    )
    jiwer_function: ClassVar[str] = "process_characters"
    unit: ClassVar[str] = "characters"
