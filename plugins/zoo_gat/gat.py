"""GAT scorer."""

from typing import Annotated, ClassVar

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent, Scorer


class Gat(Scorer):
    r"""GAT score, LeakyReLU(uᵀq + vᵀk).

    .. math:: a(q, k) = \mathrm{LeakyReLU}(u^\top q + v^\top k)

    Paper: Veličković et al. 2018, equation 3, where q and k are the projected features; u and v
    are the two halves of its vector a.

    Args:
        query_dim: width of the queries.
        key_dim: width of the keys.
        slope: negative slope of the leaky ReLU.
        bias: whether u and v have a bias, as in the authors' code.

    Shapes:
        query [..., T, query_dim], key [..., S, key_dim] -> [..., T, S].
    """

    name: ClassVar[str] = "gat"
    paper: ClassVar[str] = "Veličković et al. 2018, Graph Attention Networks, arXiv:1710.10903"

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        slope: Annotated[float, Field(ge=0, lt=1)] = 0.2,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.query_dim, self.key_dim, self.slope, self.bias = query_dim, key_dim, slope, bias
        self.u = nn.Linear(query_dim, 1, bias=bias)
        self.v = nn.Linear(key_dim, 1, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in (self.u, self.v):
            nn.init.xavier_uniform_(linear.weight)
            if self.bias:
                nn.init.zeros_(linear.bias)

    def prepare(self, key: Tensor) -> Tensor:
        projected: Tensor = self.v(key)
        return projected  # [..., S, 1]

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return F.leaky_relu(self.u(query) + prepared.transpose(-1, -2), self.slope)

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return F.leaky_relu(self.u(query) + self.v(key), self.slope).squeeze(-1)

    def score_edges(self, query: Tensor, key: Tensor, target: Tensor, source: Tensor) -> Tensor:
        query_scores = self.u(query).squeeze(-1).index_select(-1, target)
        key_scores = self.v(key).squeeze(-1).index_select(-1, source)
        return F.leaky_relu(query_scores + key_scores, self.slope)
