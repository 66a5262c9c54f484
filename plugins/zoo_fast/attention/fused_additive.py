"""Softmax attention with additive scores in Triton kernels.

Notation: B batch, H heads, N = B * H, T queries, S keys, D hidden width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from zoo.attention.heads import repeat_heads
from zoo.interfaces import Mask
from zoo_fast.attention.attention_plan import AttentionPlan
from zoo_fast.device.triton_support import why_not_triton


def fused_additive(
    a: Tensor, b: Tensor, v: Tensor, values: Tensor, mask: Mask, *, dropout_p: float = 0.0
) -> Tensor | None:
    r"""Compute softmax attention with additive scores, or return None if no kernel applies.

    .. math:: e_{ts} = \sum_d v_d \tanh(a_{td} + b_{sd})

    No tensor [..., T, S, D] is computed, and scores of long sequences a slice of queries at a time.
    The backward pass computes one reciprocal for each pair and hidden unit.

    Args:
        a: terms of the queries [B, H, T, D].
        b: terms of the keys [B, Hk, S, D].
        v: [D], or [H, D] if each head has its own.
        values: [B, Hv, S, Dv]; Hk and Hv divide H.
        dropout_p: dropout probability of the weights.

    Shapes:
        -> [B, H, T, Dv].
    """
    tensors = [part for part in (a, b, v, values, mask.bias) if part is not None]
    if min(part.numel() for part in tensors) == 0 or why_not_triton(*tensors) is not None:
        return None
    if mask.bias is not None and mask.bias.dim() == 4:
        return None  # the kernels take a bias [H, T, S]
    H, T, S = a.shape[1], a.shape[2], b.shape[2]
    if torch.is_autocast_enabled(values.device.type):
        values = values.to(torch.get_autocast_dtype(values.device.type))
    in_kernel = mask.causal and isinstance(mask.offset, int)
    rest = replace(mask, causal=False) if in_kernel else mask
    plan = AttentionPlan(
        mask=rest.dense(T, S, a.device),
        causal=int(mask.offset) if in_kernel and not mask.sees_all_keys(S) else None,
        dropout_p=dropout_p,
        seed=torch.randint(2**62, (), device=a.device) if dropout_p else None,
    )
    inputs = a, repeat_heads(b, H), v, values, mask.bias
    if not torch.is_grad_enabled() or not any(part.requires_grad for part in tensors):
        from zoo_fast.attention.kernels.additive_attention import attend

        return attend(inputs, plan)[0]
    apply: Callable[..., Tensor] = _FusedAdditive.apply
    return apply(*inputs, plan)


class _FusedAdditive(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        a: Tensor,
        b: Tensor,
        v: Tensor,
        values: Tensor,
        bias: Tensor | None,
        plan: AttentionPlan,
    ) -> Tensor:
        from zoo_fast.attention.kernels.additive_attention import attend

        context, saved = attend((a, b, v, values, bias), plan)
        ctx.plan = plan
        ctx.save_for_backward(a, b, v, values, bias, *saved)
        return context

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        from zoo_fast.attention.kernels.additive_attention import attend_backward

        a, b, v, values, bias, *saved = ctx.saved_tensors
        inputs = a, b, v, values, bias
        if torch.is_grad_enabled():  # the gradient itself is differentiated
            return *_differentiable_backward(inputs, ctx, grad_output), None
        return *attend_backward(inputs, ctx.plan, saved, grad_output), None


def _differentiable_backward(
    inputs: tuple[Tensor, ...], ctx: Any, grad_output: Tensor
) -> list[Tensor | None]:
    """Compute the gradients of the formula, so that they have gradients themselves."""
    from zoo_fast.attention.kernels.additive_attention import dropout_factors

    a, b, v, values, bias = inputs
    plan: AttentionPlan = ctx.plan
    vectors = v if v.ndim == 1 else v[:, None, None]
    scores = ((a[..., :, None, :] + b[..., None, :, :]).tanh() * vectors).sum(-1)
    if bias is not None:
        scores = scores + bias
    visible = Mask(pairs=plan.mask, causal=plan.causal is not None, offset=plan.causal or 0)
    T, S = scores.shape[-2:]
    dense = visible.dense(T, S, scores.device)
    if dense is not None:
        scores = scores.masked_fill(~dense[:, None], torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if dense is not None:
        weights = weights.masked_fill(~dense[:, None], 0.0)
    if plan.dropout_p:
        weights = weights * dropout_factors(weights, plan)
    context = weights.to(values.dtype) @ repeat_heads(values, a.shape[1])
    wanted = [x for x, needed in zip(inputs, ctx.needs_input_grad, strict=False) if needed]
    grads = iter(torch.autograd.grad(context, wanted, grad_output, create_graph=True))
    return [next(grads) if needed else None for needed in ctx.needs_input_grad[: len(inputs)]]
