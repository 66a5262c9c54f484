"""Soft alignment."""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import Alignment, AlignmentContext
from zoo_alignment.masking import masked_softmax


class Soft(Alignment):
    r"""Softmax of the scores.

    .. math:: \alpha_{ts} = \frac{\exp e_{ts}}{\sum_{s'} \exp e_{ts'}}

    Paper: Bahdanau et al. 2015, equation 6.

    Args:
        dropout: dropout probability of the weights.

    Shapes:
        scores [..., T, S], mask broadcastable to it -> weights [..., T, S].
    """

    name: ClassVar[str] = "soft"
    paper: ClassVar[str] = (
        "Bahdanau et al. 2015, Neural Machine Translation by Jointly Learning to Align and "
        "Translate, arXiv:1409.0473"
    )

    def __init__(self, *, dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        dropped: Tensor = self.dropout(masked_softmax(scores, mask))
        return dropped
