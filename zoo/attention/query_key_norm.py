"""Norm of queries and keys.

Notation: B batch, S positions, H heads, D width of a head.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor, nn


class QueryKeyNorm:
    """Kind and width of the norms of projected queries and keys; builds the modules.

    The norms are applied before queries and keys are rotated (Dehghani et al. 2023, section 2).

    Args:
        kind: 'rms' for RMSNorm, 'layer' for LayerNorm.
        over: 'head' normalises each head, with the same weights for all heads; 'all' normalises
            all heads together.
        eps: added to the variance or the mean square.
    """

    def __init__(
        self,
        *,
        kind: Literal["rms", "layer"] = "rms",
        over: Literal["head", "all"] = "head",
        eps: Annotated[float, Field(gt=0)] = 1e-6,
    ) -> None:
        self.kind, self.over, self.eps = kind, over, eps

    def build(self, heads: int, head_dim: int) -> nn.Module:
        """Build the norm of queries, or of keys, with this number of heads."""
        width = head_dim if self.over == "head" else heads * head_dim
        return (nn.RMSNorm if self.kind == "rms" else nn.LayerNorm)(width, eps=self.eps)


def norm_heads(states: Tensor, norm: nn.Module | None) -> Tensor:
    """Normalise queries or keys [B, H, S, D]: each head, or all heads if the norm is wider."""
    if norm is None:
        return states
    assert isinstance(norm.weight, Tensor)
    if len(norm.weight) == states.shape[-1]:
        each: Tensor = norm(states)
        return each
    merged = norm(states.transpose(1, 2).flatten(2))  # [B, S, H * D]
    together: Tensor = merged.unflatten(2, (states.shape[1], -1)).transpose(1, 2)
    return together
