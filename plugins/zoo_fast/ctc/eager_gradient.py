"""A function whose gradient is computed together with its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Compute = Callable[[Tensor, bool], tuple[Tensor, Tensor | None]]
"""Returns values [B] of inputs [B, ...], and their gradient [B, ...] if the flag is true."""


def apply_with_gradient(compute: Compute, inputs: Tensor) -> Tensor:
    """Return the values of ``compute``, differentiable once.

    The backward pass only scales the gradient that was computed in the forward pass.
    """
    if not torch.is_grad_enabled():
        return compute(inputs, False)[0]
    apply: Callable[..., Tensor] = _EagerGradient.apply
    return apply(inputs, compute)


class _EagerGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, compute: Compute) -> Tensor:
        values, gradient = compute(inputs, ctx.needs_input_grad[0])
        if gradient is not None:
            ctx.save_for_backward(gradient)
        ctx.dtype = inputs.dtype
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        factors = grad_output.view(-1, *[1] * (gradient.dim() - 1))
        return (gradient * factors).to(ctx.dtype), None
