"""Scaled dot scorer."""

from typing import ClassVar

from torch import Tensor

from zoo.plugin import FromParent, Scorer, WidthConflict


class ScaledDot(Scorer):
    r"""Scaled dot-product score, qᵀk / √d.

    .. math:: a(q, k) = \frac{q^\top k}{\sqrt{d}}

    Paper: Vaswani et al. 2017, equation 1.

    Args:
        query_dim: width of the queries, d.
        key_dim: width of the keys, equal to query_dim.

    Shapes:
        query [..., T, d], key [..., S, d] -> [..., T, S].
    """

    name: ClassVar[str] = "scaled-dot"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"
    supports_rotary: ClassVar[bool] = True

    def __init__(self, *, query_dim: FromParent[int], key_dim: FromParent[int]) -> None:
        super().__init__()
        if query_dim != key_dim:
            raise WidthConflict(
                "scaled-dot requires queries and keys of equal width",
                query_dim=query_dim,
                key_dim=key_dim,
            )
        self.query_dim, self.key_dim = query_dim, key_dim
        self.scale: float = query_dim**-0.5

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return (query * self.scale) @ prepared.transpose(-1, -2)

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return (query * key).sum(dim=-1) * self.scale
