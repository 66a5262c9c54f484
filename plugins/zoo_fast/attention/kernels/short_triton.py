"""Softmax attention over short sequences in one kernel, forward and backward.

Notation: B batch, H heads, T queries, S keys, D width of a head.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from zoo_fast.attention.kernels.short_tiles import backward_heads, forward_heads


def attend_short(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    valid: Tensor | None,
    *,
    causal: bool,
    scale: float,
    dropout_p: float,
) -> Tensor:
    """Compute softmax attention with all scores of a head in one program.

    It reads queries, keys and values once, and saves nothing else for the backward pass, in which
    the scores are computed again. A query without a valid key has the output 0.

    Shapes:
        query [B, H, T, D], keys and values [B, H, S, D], valid [B, S] -> [B, H, T, D].
    """
    seed = torch.randint(2**31, (1,), device=query.device) if dropout_p > 0 else None
    if valid is not None:
        valid = valid.contiguous().view(torch.uint8)
    out: Tensor = _ShortAttention.apply(  # type: ignore[no-untyped-call]
        query, keys, values, valid, seed, causal, scale, dropout_p
    )
    return out


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        valid: Tensor | None,
        seed: Tensor | None,
        causal: bool,
        scale: float,
        p: float,
    ) -> Tensor:
        query, keys, values = (_unit_stride(t) for t in (query, keys, values))
        B, H, T, D = query.shape
        out = _empty_heads(query)
        ctx.sizes = (H, T, keys.shape[2], D, scale, p)
        ctx.flags = {
            "CAUSAL": causal,
            "KEYS": valid is not None,
            "DROPOUT": seed is not None,
            "PRECISION": "ieee" if query.dtype == torch.float32 else "tf32",
            **_blocks(T, keys.shape[2], D),
        }
        forward_heads[(B * H,)](
            *(query, keys, values, out, query if valid is None else valid, seed),
            *(stride for t in (query, keys, values, out) for stride in t.stride()[:3]),
            *ctx.sizes,
            **ctx.flags,
        )
        ctx.save_for_backward(query, keys, values, valid, seed)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, values, valid, seed = ctx.saved_tensors
        grad = _unit_stride(grad)
        grads = _empty_gradients(query, keys, values)
        backward_heads[(query.shape[0] * query.shape[1],)](
            *(query, keys, values, grad, query if valid is None else valid, seed, *grads),
            *(s for t in (query, keys, values, grad, *grads) for s in t.stride()[:3]),
            *ctx.sizes,
            **ctx.flags,
        )
        return (*grads, *(None,) * 5)


def _unit_stride(tensor: Tensor) -> Tensor:
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _empty_gradients(query: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
    """Return tensors for the gradients, beside each other if they are those of one product."""
    if _are_all_of_one_storage(query, keys, values) and query.shape == keys.shape:
        return _empty_together(query, 3)
    if _are_all_of_one_storage(keys, values):
        return _empty_heads(query), *_empty_together(keys, 2)
    return tuple(_empty_heads(t) for t in (query, keys, values))


def _are_all_of_one_storage(*tensors: Tensor) -> bool:
    storages = [tensor.untyped_storage() for tensor in tensors]
    if len({storage.data_ptr() for storage in storages}) > 1:
        return False
    return storages[0].nbytes() == sum(tensor.nbytes for tensor in tensors)


def _empty_together(like: Tensor, count: int) -> tuple[Tensor, ...]:
    B, H, T, D = like.shape
    buffer = like.new_empty(B, T, count, H, D)
    return tuple(part.transpose(1, 2) for part in buffer.unbind(dim=2))


def _empty_heads(like: Tensor) -> Tensor:
    """Return a tensor [B, H, T, D] whose heads are merged without a copy."""
    B, H, T, D = like.shape
    return like.new_empty(B, T, H, D).transpose(1, 2)


def _blocks(T: int, S: int, D: int) -> dict[str, int]:
    block_t, block_s, block_d = (max(16, triton.next_power_of_2(size)) for size in (T, S, D))
    return {
        "BLOCK_T": block_t,
        "BLOCK_S": block_s,
        "BLOCK_D": block_d,
        "num_warps": 8 if block_t * block_s > 64 * 64 else 4,
    }
