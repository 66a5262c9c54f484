"""Dot scorer."""

from typing import ClassVar

from torch import Tensor

from zoo.plugin import FromParent, Scorer, WidthConflict


class Dot(Scorer):
    r"""Dot (Luong) score, the inner product of query and key.

    .. math:: a(q, k) = q^\top k

    Paper: Luong et al. 2015, section 3.1.

    Args:
        query_dim: width of the queries.
        key_dim: width of the keys, equal to query_dim.

    Shapes:
        query [..., T, D], key [..., S, D] -> [..., T, S].
    """

    name: ClassVar[str] = "dot"
    paper: ClassVar[str] = (
        "Luong et al. 2015, Effective Approaches to Attention-based Neural Machine Translation, "
        "arXiv:1508.04025"
    )
    supports_rotary: ClassVar[bool] = True

    def __init__(self, *, query_dim: FromParent[int], key_dim: FromParent[int]) -> None:
        super().__init__()
        if query_dim != key_dim:
            raise WidthConflict(
                "dot requires queries and keys of equal width", query_dim=query_dim, key_dim=key_dim
            )
        self.query_dim, self.key_dim = query_dim, key_dim

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return query @ prepared.transpose(-1, -2)

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return (query * key).sum(dim=-1)
