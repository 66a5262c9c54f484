"""Concat score: a one-layer network over query and key side by side."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent, Scorer


class Concat(Scorer):
    r"""Scores a query and a key by a small network that reads them side by side.

    .. math:: a(q, k) = v^\top \tanh(W [q; k])

    Paper: Luong et al. 2015, section 3.1. W is one matrix, initialised as such; it is applied
    in two halves, so that the pairs need not be written out.

    Args:
        query_dim: width of the queries.
        key_dim: width of the keys.
        hidden: width of the network.

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
        self.query_dim = query_dim
        self.W = nn.Linear(query_dim + key_dim, hidden, bias=False)
        self.v = nn.Parameter(torch.empty(hidden))
        nn.init.uniform_(self.v, -(hidden**-0.5), hidden**-0.5)

    def prepare(self, key: Tensor) -> Tensor:
        return key @ self.W.weight[:, self.query_dim :].T  # [..., S, hidden]

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        projected = query @ self.W.weight[:, : self.query_dim].T  # [..., T, hidden]
        mixed = projected[..., :, None, :] + prepared[..., None, :, :]  # [..., T, S, hidden]
        return mixed.tanh() @ self.v

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = self.W(torch.cat([query, key], dim=-1)).tanh() @ self.v
        return scores
