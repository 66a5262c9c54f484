"""General scorer."""

from typing import ClassVar

from torch import Tensor, nn

from zoo.plugin import FromParent, Scorer


class General(Scorer):
    r"""General (Luong) score, the bilinear form qᵀWk.

    .. math:: a(q, k) = q^\top W k

    Paper: Luong et al. 2015, section 3.1; W k is computed once per sequence.

    Args:
        query_dim: width of the queries.
        key_dim: width of the keys.

    Shapes:
        query [..., T, query_dim], key [..., S, key_dim] -> [..., T, S].
    """

    name: ClassVar[str] = "general"
    paper: ClassVar[str] = (
        "Luong et al. 2015, Effective Approaches to Attention-based Neural Machine Translation, "
        "arXiv:1508.04025"
    )

    def __init__(self, *, query_dim: FromParent[int], key_dim: FromParent[int]) -> None:
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim
        self.W = nn.Linear(key_dim, query_dim, bias=False)

    def prepare(self, key: Tensor) -> Tensor:
        projected: Tensor = self.W(key)
        return projected  # [..., S, query_dim]

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return query @ prepared.transpose(-1, -2)

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = (query * self.W(key)).sum(dim=-1)
        return scores
