"""Additive scorer with a normalised vector."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import AdditiveScorer, FromParent


class NormalisedAdditive(AdditiveScorer):
    r"""Additive score whose vector is normalised and multiplied by a learned gain.

    .. math:: a(q, k) = g \frac{v^\top}{\lVert v \rVert} \tanh(W q + U k + b)

    Paper: Raffel et al. 2017, modified energy function. Its offset r is a parameter of the
    alignment `monotonic`, because with a softmax it has no effect. The initial gain is
    hidden ** -0.5, as in the paper.

    Args:
        query_dim: width of the queries.
        key_dim: width of the keys.
        hidden: width of the hidden layer.

    Shapes:
        query [..., T, query_dim], key [..., S, key_dim] -> [..., T, S].
    """

    name: ClassVar[str] = "normalised-additive"
    paper: ClassVar[str] = (
        "Raffel et al. 2017, Online and Linear-Time Attention by Enforcing Monotonic Alignments, "
        "arXiv:1704.00784"
    )
    weight_roles: ClassVar[Mapping[str, str]] = {"v": "special", "g": "special"}

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)] = 128,
    ) -> None:
        super().__init__()
        self.query_dim, self.key_dim, self.hidden = query_dim, key_dim, hidden
        self.W = nn.Linear(query_dim, hidden)  # its bias is b
        self.U = nn.Linear(key_dim, hidden, bias=False)
        self.v = nn.Parameter(torch.empty(hidden))
        self.g = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.v)
        nn.init.constant_(self.g, self.hidden**-0.5)

    def prepare(self, key: Tensor) -> Tensor:
        projected: Tensor = self.U(key)
        return projected  # [..., S, hidden]

    def query_term(self, query: Tensor) -> Tensor:
        projected: Tensor = self.W(query)
        return projected  # [..., hidden]

    def vector(self) -> Tensor:
        """Compute the normalised v, multiplied by g: [hidden]."""
        direction: Tensor = self.g * self.v / torch.linalg.vector_norm(self.v)
        return direction
