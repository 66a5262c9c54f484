"""Character error rate (CER), computed with jiwer."""

from typing import ClassVar

from zoo_metrics.edit_rate import EditRate


class CER(EditRate):
    r"""CER: character error rate, edits per reference character.

    .. math:: \mathrm{CER} = \frac{\sum_i (S_i + D_i + I_i)}{\sum_i |y_i|}

    y_i are the characters of reference i; S, D and I are the substitutions, deletions and
    insertions of the minimum edit distance. Spaces are characters, except at the ends. Lower is
    better; values above 1 are possible. Of several references, the one with the lowest rate is
    used. Computed with jiwer; the method `reference` computes the Levenshtein distance without
    jiwer.

    Paper: Morris, Maier and Green 2004.

    Args:
        lowercase: compare in lower case.

    Shapes:
        N predictions, N lists of references -> {cer: at least 0}.
    """

    name: ClassVar[str] = "cer"
    paper: ClassVar[str] = (
        "Morris, Maier and Green 2004, From WER and RIL to MER and WIL: improved evaluation "
        "measures for connected speech recognition"
    )
    jiwer_function: ClassVar[str] = "process_characters"
    tokenization: ClassVar[str] = "characters"

    def split(self, text: str) -> list[str]:
        return list(text.strip())
