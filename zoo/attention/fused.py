"""Softmax attention in one kernel."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from zoo.interfaces import Mask


def fused_softmax(
    query: Tensor, keys: Tensor, values: Tensor, mask: Mask, *, scale: float
) -> Tensor:
    """Compute softmax attention over scale * query . key in one kernel, for use in `Scorer.fused`.

    query [B, H, T, D], keys [B, H, S, D], values [B, H, S, Dv] -> [B, H, T, Dv].
    """
    dense = mask.dense(query.shape[-2], keys.shape[-2], query.device)
    attn_mask = None if dense is None else dense[:, None]  # [B, 1, T, S]
    if mask.bias is not None:
        bias = mask.bias.to(query.dtype)
        attn_mask = bias if attn_mask is None else bias.masked_fill(~attn_mask, float("-inf"))
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=attn_mask, scale=scale)
