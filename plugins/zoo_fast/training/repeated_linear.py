"""A linear layer whose weight can be used several times in one forward pass.

Notation: K width of the inputs, N width of the outputs.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo_fast.training.weight_products import RepeatedWeight, WeightProducts, base_of

_PLAIN = (Tensor, nn.Parameter)


def repeated_linear(
    products: WeightProducts,
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    is_added: bool = True,
) -> Tensor:
    """Compute ``F.linear`` for inputs [..., K] and a weight [N, K] that `can_repeat` accepts.

    Args:
        is_added: whether to add the bias; the caller does it otherwise. It has a gradient in both
            cases.
    """
    repeated = products.use(weight, bias)
    result: Tensor = _RepeatedLinear.apply(  # type: ignore[no-untyped-call]
        inputs, weight, bias, is_added, repeated, products
    )
    return result


def can_repeat(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    """Whether `repeated_linear` can be used for a weight, which is a parameter or a view of one."""
    return (
        type(inputs) in _PLAIN
        and inputs.dim() > 1
        and weight.dim() == 2
        and _is_plain_parameter(weight, inputs.dtype)
        and (bias is None or _is_plain_parameter(bias, inputs.dtype))
        and not torch.is_autocast_enabled(inputs.device.type)
    )


class _RepeatedLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        is_added: bool,
        repeated: RepeatedWeight,
        products: WeightProducts,
    ) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.repeated, ctx.products = repeated, products
        return F.linear(inputs, weight, bias if is_added else None)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        needs_inputs, needs_weight, needs_bias, *_ = ctx.needs_input_grad
        d_inputs = grad @ weight if needs_inputs else None
        d_weight = d_bias = None
        if ctx.products.keeps(ctx.repeated):
            ctx.products.add(ctx.repeated, inputs, grad)
        else:
            rows = grad.reshape(-1, grad.shape[-1])
            if needs_weight:
                d_weight = rows.T @ inputs.reshape(-1, inputs.shape[-1])
            if needs_bias:
                d_bias = rows.sum(dim=0)
        return d_inputs, d_weight, d_bias, None, None, None


def _is_plain_parameter(view: Tensor, dtype: torch.dtype) -> bool:
    base = base_of(view)
    return (
        type(base) is nn.Parameter
        and type(view) in _PLAIN
        and view.requires_grad
        and view.dtype == base.dtype == dtype
        and base.is_contiguous()
        and not any(t._backward_hooks or t._post_accumulate_grad_hooks for t in (base, view))
        and _is_injective(view)
    )


def _is_injective(view: Tensor) -> bool:
    """Whether all elements have different places in memory."""
    needed = 1
    for stride, size in sorted(zip(view.stride(), view.shape, strict=True)):
        if size > 1 and stride < needed:
            return False
        needed += stride * (size - 1)
    return True
