"""Linear layer whose gradient of the bias is computed in a Triton kernel.

Notation: N rows, D input width, C output width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from zoo.device.column_sums import column_sums


def linear(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute the linear layer of inputs [..., D], weight [C, D], bias [C]."""
    if torch.is_autocast_enabled(inputs.device.type):
        dtype = torch.get_autocast_dtype(inputs.device.type)
        inputs, weight, bias = inputs.to(dtype), weight.to(dtype), bias.to(dtype)
    rows = inputs.reshape(-1, inputs.shape[-1])
    out: Tensor = _Linear.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
    return out.view(*inputs.shape[:-1], -1)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return torch.addmm(bias, rows, weight.T)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor]:
        rows, weight = ctx.saved_tensors
        is_differentiated = torch.is_grad_enabled()
        return (
            grad @ weight if ctx.needs_input_grad[0] else None,
            grad.T @ rows if ctx.needs_input_grad[1] else None,
            grad.sum(dim=0) if is_differentiated else column_sums(grad),
        )
