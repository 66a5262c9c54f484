"""Soft alignment: the softmax."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo import Alignment


class Soft(Alignment):
    r"""Spreads the weight over all open keys by the softmax of their scores.

    .. math:: \alpha_{ts} = \frac{\exp e_{ts}}{\sum_{s'} \exp e_{ts'}}

    Paper: Bahdanau et al. 2015, equation 6.

    Shapes:
        scores [..., T, S], mask broadcastable to it -> weights [..., T, S].
    """

    name: ClassVar[str] = "soft"
    paper: ClassVar[str] = (
        "Bahdanau et al. 2015, Neural Machine Translation by Jointly Learning to Align and "
        "Translate, arXiv:1409.0473"
    )
    is_softmax: ClassVar[bool] = True

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            return scores.softmax(dim=-1)
        # A row with nothing open would be softmax of all -inf, which is NaN.
        lowest = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~mask, lowest).softmax(dim=-1)
        return weights.masked_fill(~mask, 0.0)
