"""Linear layer whose gradients are computed together on a GPU.

Notation: N rows, D input width, C output width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from zoo.device.column_sums import column_sums
from zoo.device.overlap import start_beside


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute the linear layer of inputs [..., D], weight [C, D], bias [C].

    The gradient of the bias is computed in a Triton kernel, and in a CUDA graph those of weight and
    bias beside that of the inputs.
    """
    if torch.is_autocast_enabled(inputs.device.type):
        dtype = torch.get_autocast_dtype(inputs.device.type)
        inputs, weight = inputs.to(dtype), weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
    rows = inputs.reshape(-1, inputs.shape[-1])
    out: Tensor = _Linear.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
    return out.view(*inputs.shape[:-1], -1)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return rows @ weight.T if bias is None else torch.addmm(bias, rows, weight.T)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        for_rows, for_weight, for_bias = ctx.needs_input_grad
        if torch.is_grad_enabled():  # the backward pass is differentiated
            return grad @ weight, grad.T @ rows, grad.sum(dim=0) if for_bias else None
        wait = start_beside(
            lambda: (
                grad.T @ rows if for_weight else None,
                column_sums(grad) if for_bias else None,
            )
        )
        grad_rows = grad @ weight if for_rows else None
        return grad_rows, *wait()
