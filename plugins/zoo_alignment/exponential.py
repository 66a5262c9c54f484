"""Alignment without normalisation."""

from typing import ClassVar

from torch import Tensor

from zoo.plugin import Alignment, AlignmentContext
from zoo_alignment.masking import expand_mask


class Exponential(Alignment):
    r"""Exponential of the scores, without normalisation.

    .. math:: \alpha_{ts} = \exp e_{ts}

    With the scorer `location-window`, whose scores are log phi, the context is the paper's sum of
    phi(t, u) c_u. With other scorers the weights are not bounded.

    Paper: Graves 2013, equation 47.

    Shapes:
        scores [..., T, S], mask broadcastable to it -> weights [..., T, S].
    """

    name: ClassVar[str] = "exponential"
    paper: ClassVar[str] = (
        "Graves 2013, Generating Sequences With Recurrent Neural Networks, arXiv:1308.0850"
    )
    normalised: ClassVar[bool] = False
    bounded: ClassVar[bool] = False

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        mask = expand_mask(scores, mask)
        # Masked before the exponential: the gradient of a masked infinite score would be NaN.
        return scores.masked_fill(~mask, 0.0).exp().masked_fill(~mask, 0.0)
