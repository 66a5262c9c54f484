"""Local predictive alignment."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Alignment, AlignmentContext, FromParent, full_precision
from zoo_alignment.masking import expand_mask, masked_softmax, valid_positions, without_autocast


class LocalP(Alignment):
    r"""Softmax over a window around a position predicted from the query (local-p).

    .. math::
        p_t = S \, \sigma(v_p^\top \tanh(W_p q_t)), \qquad
        \alpha_{ts} = \frac{\exp e_{ts} [|s - p_t| \le D]}
            {\sum_{s'} \exp e_{ts'} [|s' - p_t| \le D]}
            \exp\!\Big( -\frac{(s - p_t)^2}{2 (D/2)^2} \Big)

    Paper: Luong et al. 2015, equations 9 and 10. As in the paper, the weights are not normalised
    after the Gaussian, so rows sum to less than 1. Masked keys are not counted in S and in
    positions. Positions are computed in float32 or higher, also under autocast: half precision is
    coarser than a position.

    Args:
        query_dim: width of the queries.
        D: half width of the window.

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
        self.query_dim, self.D = query_dim, D
        self.W_p = nn.Linear(query_dim, query_dim, bias=False)
        self.v_p = nn.Parameter(torch.empty(query_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.query_dim**-0.5
        nn.init.uniform_(self.v_p, -bound, bound)

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        if context is None:
            raise ZooError(f"alignment '{self.name}' requires a context with the queries")
        mask = expand_mask(scores, mask)
        position, S = valid_positions(mask)
        with without_autocast(scores.device):
            hidden: Tensor = full_precision(self.W_p(context.query.to(self.v_p.dtype))).tanh()
            fraction = (hidden @ full_precision(self.v_p)).sigmoid()  # [B, H, T]
        distance = position - S * fraction[..., None]  # [B, H, T, S]
        gauss = (-2 * (distance / self.D).square()).exp().to(scores.dtype)
        return masked_softmax(scores, mask & (distance.detach().abs() <= self.D)) * gauss
