"""Arguments of the kernels of additive attention."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class AttentionPlan:
    """Mask [B or 1, T or 1, S], offset of a causal mask, and dropout."""

    mask: Tensor | None
    causal: int | None
    dropout_p: float
    seed: Tensor | None
