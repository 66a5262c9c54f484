"""Linear layers of the same inputs, whose gradients are computed together on a GPU.

Notation: N rows, D input width, C output width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from zoo.device.column_sums import column_sums
from zoo.device.overlap import start_beside


def linear(
    inputs: Tensor, weight: Tensor, bias: Tensor | None, widths: Sequence[int]
) -> tuple[Tensor, ...]:
    """Compute the parts [..., width] of a linear layer: inputs [..., D], weight [C, D], bias [C].

    The gradient of the bias is computed in a Triton kernel, and in a CUDA graph those of weight and
    bias beside that of the inputs.
    """
    if torch.is_autocast_enabled(inputs.device.type):
        dtype = torch.get_autocast_dtype(inputs.device.type)
        inputs, weight = inputs.to(dtype), weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
    rows = inputs.reshape(-1, inputs.shape[-1])
    parts = _Linear.apply(rows, weight, bias, tuple(widths))  # type: ignore[no-untyped-call]
    return tuple(part.view(*inputs.shape[:-1], -1) for part in parts)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, widths: tuple[int, ...]
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(rows, weight)
        out = rows @ weight.T if bias is None else torch.addmm(bias, rows, weight.T)
        return torch.split(out, list(widths), dim=-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        for_rows, for_weight, for_bias, _ = ctx.needs_input_grad
        if torch.is_grad_enabled():  # the backward pass is differentiated
            grad = torch.cat(grads, dim=-1)
            return grad @ weight, grad.T @ rows, grad.sum(dim=0) if for_bias else None, None
        grad = join_columns(grads)
        wait = start_beside(
            lambda: (
                grad.T @ rows if for_weight else None,
                column_sums(grad) if for_bias else None,
            )
        )
        grad_rows = grad @ weight if for_rows else None
        return grad_rows, *wait(), None


def join_columns(parts: Sequence[Tensor]) -> Tensor:
    """Return parts [N, width] beside each other [N, C], without a copy if they are so in memory."""
    first, C = parts[0], sum(part.shape[1] for part in parts)
    place = first.data_ptr()
    for part in parts:
        adjacent = part.data_ptr() == place and part.stride() == (C, 1)
        if not adjacent or part.dtype != first.dtype:
            return torch.cat(list(parts), dim=-1)
        place += part.shape[1] * part.element_size()
    if first.untyped_storage().data_ptr() != parts[-1].untyped_storage().data_ptr():
        return torch.cat(list(parts), dim=-1)
    return first.as_strided((first.shape[0], C), (C, 1))
