"""Concat scorer."""

from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import AdditiveScorer, FromParent


class _SlicedLinear(nn.Linear):
    """Linear map that can be applied to a slice of its input features."""

    def forward(self, input: Tensor, features: slice = slice(None)) -> Tensor:
        return F.linear(input, self.weight[:, features])


class Concat(AdditiveScorer):
    r"""Concat (Luong) score, vᵀ tanh(W[q; k]).

    .. math:: a(q, k) = v^\top \tanh(W [q; k])

    Paper: Luong et al. 2015, section 3.1. W is applied to queries and keys separately, which
    avoids concatenating every pair.

    Args:
        query_dim: width of the queries.
        key_dim: width of the keys.
        hidden: width of the hidden layer.

    Shapes:
        query [..., T, query_dim], key [..., S, key_dim] -> [..., T, S].
    """

    name: ClassVar[str] = "concat"
    paper: ClassVar[str] = (
        "Luong et al. 2015, Effective Approaches to Attention-based Neural Machine Translation, "
        "arXiv:1508.04025"
    )

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)] = 128,
    ) -> None:
        super().__init__()
        self.query_dim, self.key_dim, self.hidden = query_dim, key_dim, hidden
        self.W = _SlicedLinear(query_dim + key_dim, hidden, bias=False)
        self.v = nn.Parameter(torch.empty(hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.hidden**-0.5
        nn.init.uniform_(self.v, -bound, bound)

    def prepare(self, key: Tensor) -> Tensor:
        projected: Tensor = self.W(key, slice(self.query_dim, None))
        return projected  # [..., S, hidden]

    def query_term(self, query: Tensor) -> Tensor:
        projected: Tensor = self.W(query, slice(self.query_dim))
        return projected  # [..., hidden]

    def vector(self) -> Tensor:
        return self.v

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = self.W(torch.cat([query, key], dim=-1)).tanh() @ self.v
        return scores
