"""Disentangled position: learned vectors of relative positions, compared with queries and keys.

Notation: B batch, H heads, T queries, S keys, R vectors of relative positions, d width of a head.
"""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Attention, FromParent, Linear, Position
from zoo_positions.indices import indices

Terms = Literal["both", "content-to-position", "position-to-content"]


class Disentangled(Position):
    r"""Disentangled relative positions: a bias of queries and keys with vectors of their distance.

    .. math::
        b_{ts} = \frac{q_t^\top W_k P_{\delta(t, s)} + k_s^\top W_q P_{\delta(t, s)}}
        {\sqrt{(1 + n) d}}

    with n = 2 terms, content to position and position to content. The scores of queries and keys
    should have the same factor: set `scale` of the scorer to 1 / √((1 + n) d). All layers share
    the vectors P; W are projections of each layer. In the paper the second term has
    :math:`\delta(s, t)`; the authors' code has the same vector in both, as here.

    With buckets, small distances have a vector each, and larger distances share vectors of
    logarithmic width (DeBERTa-v2, v3).

    Paper: He et al. 2021, equations 3 and 4.

    Args:
        dim: width of the states and of the vectors.
        heads: number of heads.
        head_dim: width of a head, d.
        max_distance: distances from this on share the last vector of their direction.
        buckets: number of vectors of each direction; max_distance if not set.
        terms: 'both', or one of the two terms, then n is 1.
        shared: whether W are the attention's own projections of queries and keys.
        norm_eps: epsilon of a LayerNorm of the vectors; no norm if not set.
        dropout: dropout probability of the vectors.

    Shapes:
        bias of an attention [B, H, T, S].
    """

    name: ClassVar[str] = "disentangled"
    paper: ClassVar[str] = (
        "He et al. 2021, DeBERTa: Decoding-enhanced BERT with Disentangled Attention, "
        "arXiv:2006.03654"
    )
    requires_inner_product = True

    def __init__(
        self,
        *,
        dim: FromParent[int],
        heads: FromParent[int],
        head_dim: FromParent[int],
        max_distance: Annotated[int, Field(ge=2, le=2**20)] = 512,
        buckets: Annotated[int, Field(ge=2, le=2**20)] | None = None,
        terms: Terms = "both",
        shared: bool = False,
        norm_eps: Annotated[float, Field(gt=0)] | None = None,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        if buckets is not None and max_distance - 1 <= buckets // 2:
            raise ZooError(
                f"max_distance ({max_distance}) must be greater than {buckets // 2 + 1} with "
                f"{buckets} buckets"
            )
        self.dim, self.heads, self.head_dim = dim, heads, head_dim
        self.max_distance, self.buckets, self.terms = max_distance, buckets, terms
        self.shared, self.dropout = shared, dropout
        self.span = max_distance if buckets is None else buckets
        self.log_range = _log_range(max_distance, buckets)
        self.table = nn.Embedding(2 * self.span, dim)
        self.norm = None if norm_eps is None else nn.LayerNorm(dim, eps=norm_eps)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table.weight, std=0.02)

    def relative(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> tuple[Tensor, ...]:
        """Return the vectors P [R, dim], and the index of the vector of each pair [T, S]."""
        distance = indices(T, offset, device)[:, None] - torch.arange(S, device=device)
        if self.buckets is not None:
            distance = self._bucket(distance, self.buckets // 2)
        index = (distance + self.span).clamp(0, 2 * self.span - 1)
        vectors = self.table.weight if self.norm is None else self.norm(self.table.weight)
        return vectors, index

    def build_score_bias(self, query_dim: int) -> nn.Module | None:
        if self.shared and query_dim != self.dim:
            raise ZooError(
                f"shared projections require vectors of the width of the states, {query_dim}, not "
                f"{self.dim}; set shared: false"
            )
        return DisentangledBias(self)

    def _bucket(self, distance: Tensor, near: int) -> Tensor:
        """Map distances (query - key) [T, S] to numbers of buckets [T, S], negative before 0."""
        far = distance.abs().clamp(min=near)
        # In float32, as the authors' code: a distance can be at the border of two buckets.
        ratio = torch.log(far / near) / self.log_range
        bucket = (near + torch.ceil(ratio * (near - 1))).long() * distance.sign()
        return torch.where(distance.abs() <= near, distance, bucket)


class DisentangledBias(nn.Module):
    """The bias of one attention.

    Args:
        position: has the vectors of all attentions.
    """

    def __init__(self, position: Disentangled) -> None:
        super().__init__()
        widths = position.dim, position.heads * position.head_dim
        self.to_position = position.terms != "position-to-content"
        self.to_content = position.terms != "content-to-position"
        has_key, has_query = (
            term and not position.shared for term in (self.to_position, self.to_content)
        )
        self.key = Linear(*widths) if has_key else None
        self.query = Linear(*widths) if has_query else None
        self.dropout = nn.Dropout(position.dropout)
        self.scale = ((1 + self.to_position + self.to_content) * position.head_dim) ** -0.5

    def forward(
        self,
        attention: Attention,
        position: Disentangled,
        states: Tensor,
        queries: Tensor,
        keys: Tensor,
        *,
        offset: int | Tensor = 0,
    ) -> Tensor:
        vectors, index = position("relative", queries, keys, offset=offset)
        vectors = self.dropout(vectors)[None]  # [1, R, dim]
        index = index.expand(*queries.shape[:2], -1, -1)  # [B, H, T, S]
        terms = []
        if self.to_position:
            scores = queries @ self._keys(attention, vectors).transpose(-1, -2)  # [B, H, T, R]
            terms.append(scores.gather(-1, index))
        if self.to_content:
            scores = self._queries(attention, vectors) @ keys.transpose(-1, -2)  # [B, H, R, S]
            terms.append(scores.gather(-2, index))
        bias: Tensor = self.scale * sum(terms[1:], terms[0])
        return bias

    def _keys(self, attention: Attention, vectors: Tensor) -> Tensor:
        """Project vectors [1, R, dim] to keys [1, H, R, d]."""
        if self.key is not None:
            return _split(self.key(vectors), attention.heads)
        keys = attention.prepare_keys(attention.project_keys(vectors), None, 0)
        return keys.repeat_interleave(attention.heads // keys.shape[1], dim=1)

    def _queries(self, attention: Attention, vectors: Tensor) -> Tensor:
        """Project vectors [1, R, dim] to queries [1, H, R, d]."""
        if self.query is not None:
            return _split(self.query(vectors), attention.heads)
        return attention.prepare_queries(attention.project_queries(vectors), None, 0)


def _log_range(max_distance: int, buckets: int | None) -> float:
    """Return the logarithm of the largest distance over the near ones, rounded to float32."""
    if buckets is None:
        return 0.0
    ratio = torch.tensor((max_distance - 1) / (buckets // 2), dtype=torch.float32, device="cpu")
    return ratio.log().item()


def _split(vectors: Tensor, heads: int) -> Tensor:
    """Split vectors [1, R, H * d] into heads [1, H, R, d]."""
    return vectors.view(*vectors.shape[:2], heads, -1).transpose(1, 2)
