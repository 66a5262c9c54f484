"""Additive scorer."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import AdditiveScorer, FromParent, WidthConflict


class Additive(AdditiveScorer):
    r"""Additive (Bahdanau) score, vᵀ tanh(Wq + Uk).

    .. math:: a(q, k) = v^\top \tanh(W q + U k)

    Paper: Bahdanau et al. 2015, appendix A.1.2; U k is computed once per sequence. With project:
    false, the score is vᵀ tanh(q + k), as in AdditiveAttention of Keras, whose scale is v.

    Args:
        query_dim: width of the queries.
        key_dim: width of the keys.
        hidden: width of the hidden layer; by default 128, and with project: false the width of
            queries and keys.
        project: whether queries and keys are projected by W and U.

    Shapes:
        query [..., T, query_dim], key [..., S, key_dim] -> [..., T, S].
    """

    name: ClassVar[str] = "additive"
    paper: ClassVar[str] = (
        "Bahdanau et al. 2015, Neural Machine Translation by Jointly Learning to Align and "
        "Translate, arXiv:1409.0473"
    )

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)] | None = None,
        project: bool = True,
    ) -> None:
        super().__init__()
        self.query_dim, self.key_dim, self.project = query_dim, key_dim, project
        self.hidden = hidden or (128 if project else query_dim)
        if not project:
            _require_equal_widths(query_dim, key_dim, self.hidden)
        self.W = nn.Linear(query_dim, self.hidden, bias=False) if project else nn.Identity()
        self.U = nn.Linear(key_dim, self.hidden, bias=False) if project else nn.Identity()
        self.v = nn.Parameter(torch.empty(self.hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.hidden**-0.5
        nn.init.uniform_(self.v, -bound, bound)

    def prepare(self, key: Tensor) -> Tensor:
        projected: Tensor = self.U(key)
        return projected  # [..., S, hidden]

    def query_term(self, query: Tensor) -> Tensor:
        projected: Tensor = self.W(query)
        return projected  # [..., hidden]

    def vector(self) -> Tensor:
        return self.v


def _require_equal_widths(query_dim: int, key_dim: int, hidden: int) -> None:
    if query_dim != key_dim:
        raise WidthConflict(
            "project: false needs queries and keys of the same width",
            query_dim=query_dim,
            key_dim=key_dim,
        )
    if hidden != query_dim:
        raise ZooError(
            f"hidden ({hidden}) must be the width of the queries ({query_dim}) with project: "
            "false; remove it"
        )
