"""Location-aware scorer."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import AdditiveScorer, FromParent, rename_params


class Location(AdditiveScorer):
    r"""Location-aware additive score, with convolutional features of the previous weights.

    .. math::
        f_i = F * \alpha_{i-1}, \qquad
        e_{ij} = w^\top \tanh(W s_{i-1} + V h_j + U f_{ij} + b)

    Paper: Chorowski et al. 2015, equations 8 and 9. The weights are zero-padded, and zero before
    the first query. `score` and `score_pairs` use f = 0.

    Args:
        query_dim: width of the queries.
        key_dim: width of the keys.
        hidden: width of the hidden layer.
        filters: number of filters in F.
        kernel_radius: filters have width 2 * kernel_radius + 1; 100 for the paper's 201.

    Shapes:
        query [..., T, query_dim], key [..., S, key_dim] -> [..., T, S]; `step`: query
        [B, 1, query_dim], weights of the previous query [B, S] -> [B, 1, S].
    """

    name: ClassVar[str] = "location"
    version: ClassVar[int] = 2
    paper: ClassVar[str] = (
        "Chorowski et al. 2015, Attention-Based Models for Speech Recognition, arXiv:1506.07503"
    )
    sequential: ClassVar[bool] = True
    test_params: ClassVar[Mapping[str, Any]] = {"filters": 2, "kernel_radius": 1}

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)] = 128,
        filters: Annotated[int, Field(ge=1)] = 10,
        kernel_radius: Annotated[int, Field(ge=0)] = 100,
    ) -> None:
        super().__init__()
        self.query_dim, self.key_dim, self.hidden = query_dim, key_dim, hidden
        self.filters, self.kernel_radius = filters, kernel_radius
        self.W = nn.Linear(query_dim, hidden, bias=False)
        self.V = nn.Linear(key_dim, hidden)  # its bias is b
        self.U = nn.Linear(filters, hidden, bias=False)
        self.F = nn.Conv1d(1, filters, 2 * kernel_radius + 1, padding=kernel_radius, bias=False)
        self.w = nn.Parameter(torch.empty(hidden))
        self.reset_parameters()

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, reach="kernel_radius")
        return params, tensors

    def reset_parameters(self) -> None:
        bound = self.hidden**-0.5
        nn.init.uniform_(self.w, -bound, bound)

    def prepare(self, key: Tensor) -> Tensor:
        projected: Tensor = self.V(key)
        return projected  # [..., S, hidden]

    def query_term(self, query: Tensor) -> Tensor:
        projected: Tensor = self.W(query)
        return projected  # [..., hidden]

    def vector(self) -> Tensor:
        return self.w

    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        f = self.F(state["weights"][:, None]).transpose(1, 2)  # [B, S, filters]
        return self.score(query, prepared + self.U(f)), {}
