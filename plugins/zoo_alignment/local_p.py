"""Local alignment, predictive: a window where the query says."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Alignment, AlignmentContext, FromParent
from zoo_alignment.masking import expand_mask, masked_softmax, valid_positions


class LocalP(Alignment):
    r"""Looks around a place predicted from the query, the less the further from it.

    .. math::
        p_t = S \, \sigma(v_p^\top \tanh(W_p q_t)), \qquad
        \alpha_{ts} = \frac{\exp e_{ts} [|s - p_t| \le D]}
            {\sum_{s'} \exp e_{ts'} [|s' - p_t| \le D]}
            \exp\!\Big( -\frac{(s - p_t)^2}{2 (D/2)^2} \Big)

    Paper: Luong et al. 2015, equations 9 and 10. As there, the Gaussian is not made up for: rows
    sum to less than 1. S is the number of open keys, and their places 0, 1, ... are counted
    among them alone.

    Args:
        query_dim: width of the queries.
        D: how far the window reaches to each side.

    Shapes:
        scores [B, H, T, S], mask broadcastable to it -> weights [B, H, T, S].
    """

    name: ClassVar[str] = "local-p"
    paper: ClassVar[str] = (
        "Luong et al. 2015, Effective Approaches to Attention-based Neural Machine Translation, "
        "arXiv:1508.04025"
    )
    normalised: ClassVar[bool] = False
    test_params: ClassVar[Mapping[str, Any]] = {"D": 1}

    def __init__(self, *, query_dim: FromParent[int], D: Annotated[int, Field(ge=1)] = 10) -> None:
        super().__init__()
        self.D = D
        self.W_p = nn.Linear(query_dim, query_dim, bias=False)
        self.v_p = nn.Parameter(torch.empty(query_dim))
        nn.init.uniform_(self.v_p, -(query_dim**-0.5), query_dim**-0.5)

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        if context is None:
            raise ZooError(f"alignment '{self.name}' predicts its window from the query's look")
        mask = expand_mask(scores, mask)
        place, S = valid_positions(mask)
        fraction = (self.W_p(context.query).tanh() @ self.v_p).sigmoid()  # [B, H, T]
        distance = place - S * fraction[..., None]  # [B, H, T, S]
        gauss: Tensor = (-2 * (distance / self.D).square()).exp()
        return masked_softmax(scores, mask & (distance.detach().abs() <= self.D)) * gauss
