"""Soft alignment."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import Alignment, AlignmentContext, FromParent
from zoo_alignment.masking import masked_softmax


class Soft(Alignment):
    r"""Softmax of the scores, optionally with an attention sink.

    .. math:: \alpha_{ts} = \frac{\exp e_{ts}}{\sum_{s'} \exp e_{ts'}}, \qquad
        \text{or with a sink: }
        \alpha_{ts} = \frac{\exp e_{ts}}{\exp b + \sum_{s'} \exp e_{ts'}}

    Paper: Bahdanau et al. 2015, equation 6; Xiao et al. 2024, section 3.3, and OpenAI 2025,
    gpt-oss, section 2.2 (sink).

    Args:
        dropout: dropout probability of the weights.
        sink: whether each head has a learned score b, initially 0, of a further key without a
            value, so that a query can attend to nothing; rows then sum to less than 1.
        heads: number of heads, each with its own b.

    Shapes:
        scores [..., T, S], mask broadcastable to it -> weights [..., T, S]; with a sink, scores
        [..., heads, T, S].
    """

    name: ClassVar[str] = "soft"
    paper: ClassVar[str] = (
        "Bahdanau et al. 2015, Neural Machine Translation by Jointly Learning to Align and "
        "Translate, arXiv:1409.0473"
    )

    def __init__(
        self,
        *,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        sink: bool = False,
        heads: FromParent[int] = 1,
    ) -> None:
        super().__init__()
        self.dropout, self.heads = nn.Dropout(dropout), heads
        self.sink = nn.Parameter(torch.empty(heads)) if sink else None
        self.weight_roles: Mapping[str, str] = {"sink": "special"} if sink else {}
        self.reset_parameters()

    @property
    def normalised(self) -> bool:
        return self.sink is None

    def reset_parameters(self) -> None:
        if self.sink is not None:
            nn.init.zeros_(self.sink)

    def extra_repr(self) -> str:
        return f"heads={self.heads}"

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        if self.sink is not None:
            S = scores.shape[-1]
            b = self.sink.to(scores.dtype)[:, None, None].expand_as(scores[..., :1])
            scores = torch.cat([scores, b], dim=-1)  # [..., T, S + 1]
            if mask is not None:
                mask = F.pad(mask.expand(*mask.shape[:-1], S), (0, 1), value=True)
        weights = masked_softmax(scores, mask)
        dropped: Tensor = self.dropout(weights if self.sink is None else weights[..., :-1])
        return dropped
