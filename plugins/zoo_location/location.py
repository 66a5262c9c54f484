"""Location-aware score: additive, and aware of where the step before looked."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent, Scorer


class Location(Scorer):
    r"""Scores a key by what it says and by how the step before looked at its neighbourhood.

    .. math::
        f_i = F * \alpha_{i-1}, \qquad
        e_{ij} = w^\top \tanh(W s_{i-1} + V h_j + U f_{ij} + b)

    Paper: Chorowski et al. 2015, equations 8 and 9. Beyond the ends of the sequence, and before
    the first look, the weights are zero. Without a look before (`score`, `pairs`) f is zero.

    Args:
        query_dim: width of the queries.
        key_dim: width of the keys.
        hidden: width of the network.
        filters: how many filters F has.
        reach: how far a filter sees to each side; the paper's 201 places are a reach of 100.

    Shapes:
        query [..., T, query_dim], key [..., S, key_dim] -> [..., T, S]; a step: query
        [B, 1, query_dim], weights of the step before [B, S] -> [B, 1, S].
    """

    name: ClassVar[str] = "location"
    paper: ClassVar[str] = (
        "Chorowski et al. 2015, Attention-Based Models for Speech Recognition, arXiv:1506.07503"
    )
    sequential: ClassVar[bool] = True
    test_params: ClassVar[Mapping[str, Any]] = {"filters": 2, "reach": 1}

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)] = 128,
        filters: Annotated[int, Field(ge=1)] = 10,
        reach: Annotated[int, Field(ge=0)] = 100,
    ) -> None:
        super().__init__()
        self.W = nn.Linear(query_dim, hidden, bias=False)
        self.V = nn.Linear(key_dim, hidden)  # its bias is the paper's b
        self.U = nn.Linear(filters, hidden, bias=False)
        self.F = nn.Conv1d(1, filters, 2 * reach + 1, padding=reach, bias=False)
        self.w = nn.Parameter(torch.empty(hidden))
        nn.init.uniform_(self.w, -(hidden**-0.5), hidden**-0.5)

    def prepare(self, key: Tensor) -> Tensor:
        projected: Tensor = self.V(key)
        return projected  # [..., S, hidden]

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        mixed = self.W(query)[..., :, None, :] + prepared[..., None, :, :]  # [..., T, S, hidden]
        scores: Tensor = mixed.tanh() @ self.w
        return scores

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = (self.W(query) + self.V(key)).tanh() @ self.w
        return scores

    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        f = self.F(state["weights"][:, None]).transpose(1, 2)  # [B, S, filters]
        return self.score(query, prepared + self.U(f)), {}
