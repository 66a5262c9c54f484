"""Linear layers of the same inputs, whose gradients are computed together on a GPU.

Notation: N rows, D input width, C output width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from zoo_fast.attention.concatenate import concatenate
from zoo_fast.device.column_sums import column_sums
from zoo_fast.device.late_gradients import LateParameters, late_parameters


def linear(
    inputs: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Compute the outputs [..., width] of linear layers for inputs [..., D], in one product.

    The gradients of the biases are computed in a Triton kernel; those of weights and biases late,
    if it is possible, see `LateGradients`.

    Args:
        weights: [width, D] of each layer.
        biases: [width] of each layer; empty if they have none.
    """
    late = late_parameters(inputs, weights, biases)
    if late is not None:
        weights, biases = [w.detach() for w in weights], [b.detach() for b in biases]
    weight = concatenate(weights)
    bias = concatenate(biases) if biases else None
    widths = tuple(len(each) for each in weights)
    if torch.is_autocast_enabled(inputs.device.type):
        dtype = torch.get_autocast_dtype(inputs.device.type)
        inputs, weight = inputs.to(dtype), weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
    rows = inputs.reshape(-1, inputs.shape[-1])
    parts = _Linear.apply(rows, weight, bias, widths, late)  # type: ignore[no-untyped-call]
    return tuple(part.view(*inputs.shape[:-1], -1) for part in parts)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        widths: tuple[int, ...],
        late: LateParameters | None,
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(rows, weight)
        ctx.late = late
        out = rows @ weight.T if bias is None else torch.addmm(bias, rows, weight.T)
        return torch.split(out, list(widths), dim=-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        for_rows, for_weight, for_bias = ctx.needs_input_grad[:3]
        late: LateParameters | None = ctx.late
        if late is None and torch.is_grad_enabled():  # the backward pass is differentiated
            grad = torch.cat(grads, dim=-1)
            bias_gradient = grad.sum(dim=0) if for_bias else None
            return grad @ weight, grad.T @ rows, bias_gradient, None, None
        grad = join_columns(grads)
        if late is not None:
            _, biases = late.groups
            late.add(lambda: (grad.T @ rows, column_sums(grad) if biases else None))
            return grad @ weight, *(None,) * 4
        return (
            grad @ weight if for_rows else None,
            grad.T @ rows if for_weight else None,
            column_sums(grad) if for_bias else None,
            *(None,) * 2,
        )


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
