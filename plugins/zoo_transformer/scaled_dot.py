"""Scaled dot scorer."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import FromParent, Scorer, WidthConflict


class ScaledDot(Scorer):
    r"""Scaled dot-product score, qᵀk / √d, optionally with a soft cap.

    .. math:: a(q, k) = \frac{q^\top k}{\sqrt{d}}, \qquad
        \text{or with a cap: } c \tanh\left(\frac{a(q, k)}{c}\right)

    Paper: Vaswani et al. 2017, equation 1; Gemma Team 2024, section 2 (cap).

    Args:
        query_dim: width of the queries, d.
        key_dim: width of the keys, equal to query_dim.
        scale: factor of the inner product; 1 / √d if not set.
        cap: largest absolute score, c; none if not set.

    Shapes:
        query [..., T, d], key [..., S, d] -> [..., T, S].
    """

    name: ClassVar[str] = "scaled-dot"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"
    supports_rotary: ClassVar[bool] = True

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        scale: Annotated[float, Field(gt=0)] | None = None,
        cap: Annotated[float, Field(gt=0)] | None = None,
    ) -> None:
        super().__init__()
        if query_dim != key_dim:
            raise WidthConflict(
                "scaled-dot requires queries and keys of equal width",
                query_dim=query_dim,
                key_dim=key_dim,
            )
        self.query_dim, self.key_dim = query_dim, key_dim
        self.scale: float = query_dim**-0.5 if scale is None else scale
        self.cap = cap

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return self._limit((query * self.scale) @ prepared.transpose(-1, -2))

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return self._limit((query * key).sum(dim=-1) * self.scale)

    def _limit(self, scores: Tensor) -> Tensor:
        return scores if self.cap is None else self.cap * torch.tanh(scores / self.cap)
