"""Dot scorer."""

from typing import ClassVar

from torch import Tensor

from zoo.plugin import FromParent, Mask, ScoreForm, Scorer, WidthConflict, fused_softmax


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

    @property
    def inner_product_scale(self) -> float:
        return 1.0

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return query @ prepared.transpose(-1, -2)

    def score_form(self) -> ScoreForm:
        return ScoreForm()

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return (query * key).sum(dim=-1)

    def fused(
        self,
        query: Tensor,
        prepared: Tensor,
        values: Tensor,
        mask: Mask,
        *,
        dropout_p: float = 0.0,
    ) -> Tensor | None:
        return fused_softmax(query, prepared, values, mask, scale=1.0, dropout_p=dropout_p)
