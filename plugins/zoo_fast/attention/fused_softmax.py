"""Softmax attention in one kernel.

Notation: B batch, H query heads, G query heads per head of keys and values, T queries, S keys.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from zoo.attention.heads import repeat_heads
from zoo.interfaces import Mask
from zoo_fast.attention.masks import (
    additive_mask,
    is_causal_only,
    without_full_keys,
    without_wide_window,
)
from zoo_fast.attention.short import why_not_short
from zoo_fast.device.without_cudnn import WithoutCudnn

MAX_WIDTH = 256
"""Width of a head up to which torch's fused kernels are used on a GPU."""
MAX_WITHOUT_CUDNN = 2**27
"""Multiplications for the scores up to which cuDNN is not used without gradients: it saves less
than 10 us then, and takes 40 to 65 ms before the first call with each shape (H200)."""


def fused_softmax(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Mask,
    *,
    scale: float,
    dropout_p: float = 0.0,
) -> Tensor:
    """Compute softmax attention over scale * query . key in one kernel.

    Calls torch's `scaled_dot_product_attention`, or `attend_short` in training with short
    sequences. A causal mask from the first key on is passed as a
    flag; padding, pairs and other offsets as a boolean mask; a bias as an additive mask [H, T, S].
    On the CPU, a mask of keys without padding is omitted.

    query [B, H, T, D], keys [B, Hk, S, D], values [B, Hv, S, Dv] -> [B, H, T, Dv]; Hk and Hv
    divide H, and their heads are not copied if a kernel supports it.

    Args:
        dropout_p: dropout probability of the weights.
    """
    mask = without_wide_window(mask, query.shape[-2], keys.shape[-2])
    if why_not_short(query, keys, values, mask) is None:
        from zoo_fast.attention.kernels.short_triton import attend_short

        return attend_short(
            query, keys, values, mask.keys, causal=mask.causal, scale=scale, dropout_p=dropout_p
        )
    H, T = query.shape[1:3]
    attn_mask, is_causal = _mask_arguments(mask, query, keys.shape[-2])
    grouped = keys.shape[1] < H or values.shape[1] < H
    if grouped and keys.shape[1] != values.shape[1]:
        keys, values, grouped = repeat_heads(keys, H), repeat_heads(values, H), False
    if grouped and T == 1 and not is_causal:
        return _attend_one(query, keys, values, attn_mask, scale, dropout_p)
    if grouped and not _supports_groups(query, attn_mask):
        keys, values, grouped = repeat_heads(keys, H), repeat_heads(values, H), False
    with _choose_kernels(query, keys, values):
        return F.scaled_dot_product_attention(
            query,
            keys,
            values,
            attn_mask=attn_mask,
            dropout_p=dropout_p,
            is_causal=is_causal,
            scale=scale,
            enable_gqa=grouped,
        )


def _choose_kernels(query: Tensor, keys: Tensor, values: Tensor) -> AbstractContextManager[object]:
    """Return a context with the kernels of torch that can be chosen."""
    if _is_wide(query, keys, values):
        return sdpa_kernel(SDPBackend.MATH)
    return WithoutCudnn() if _is_small(query, keys, values) else nullcontext()


def _is_small(query: Tensor, keys: Tensor, values: Tensor) -> bool:
    """Whether cuDNN would take longer for a new shape than it saves, and is not the only choice."""
    if not query.is_cuda or query.dtype == torch.float32 or torch.compiler.is_compiling():
        return False
    inputs = (query, keys, values)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        return False
    is_small = query.numel() * keys.shape[-2] <= MAX_WITHOUT_CUDNN
    return is_small and torch.backends.cuda.math_sdp_enabled()  # type: ignore[no-untyped-call]


def _is_wide(query: Tensor, keys: Tensor, values: Tensor) -> bool:
    """Whether separate kernels are faster: torch's fused kernel for wide heads on a GPU reads the
    keys and values many times. The weights need at most the memory of the queries."""
    width = max(query.shape[-1], values.shape[-1])
    return query.is_cuda and width > MAX_WIDTH and keys.shape[-2] <= query.shape[-1]


def _attend_one(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    attn_mask: Tensor | None,
    scale: float,
    dropout_p: float,
) -> Tensor:
    """Attend with one query per head: the heads of a group are the queries of one head."""
    B, H, _, D = query.shape
    groups = keys.shape[1]
    folded = query.reshape(B, groups, H // groups, D)  # [B, Hkv, G, D]
    if attn_mask is not None and attn_mask.shape[-3] == H:  # a bias [H, 1, S]
        attn_mask = attn_mask.squeeze(-2).reshape(
            -1, groups, H // groups, attn_mask.shape[-1]
        )  # [1 or B, Hkv, G, S]
    with WithoutCudnn() if _is_small(folded, keys, values) else nullcontext():
        context = F.scaled_dot_product_attention(
            folded, keys, values, attn_mask=attn_mask, dropout_p=dropout_p, scale=scale
        )
    return context.reshape(B, H, 1, -1)


def _supports_groups(query: Tensor, attn_mask: Tensor | None) -> bool:
    """Whether a kernel shares heads of keys and values.

    On a GPU only the flash kernel does: in half precision, without a mask. Otherwise torch would
    compute all weights.
    """
    if query.device.type != "cuda":
        return True
    return attn_mask is None and query.dtype in (torch.float16, torch.bfloat16)


def _mask_arguments(mask: Mask, query: Tensor, S: int) -> tuple[Tensor | None, bool]:
    """Return the mask [..., 1 or H, T, S], boolean or additive, and whether the flag is causal."""
    mask = without_full_keys(mask)
    if is_causal_only(mask) and mask.bias is None:
        return None, not mask.sees_all_keys(S)
    T = query.shape[-2]
    if mask.bias is not None:
        return additive_mask(mask, T, S, query), False
    dense = mask.dense(T, S, query.device)
    return (None if dense is None else dense[:, None]), False
