"""Linear layers of the same inputs, whose outputs and gradients are columns of one tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

ALIGNMENT = 16
"""Number of elements of which the stride of rows is a multiple, for wide loads."""


def joint_projection(
    inputs: Tensor, weight: Tensor, bias: Tensor | None, widths: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """Compute the parts [N, width] of a linear layer: inputs [N, D], weight [C, D], bias [C].

    The inputs are read once. If the gradients of the parts are columns of one tensor too, they are
    not copied.
    """
    apply: Callable[..., tuple[Tensor, ...]] = _JointProjection.apply
    return apply(inputs, weight, bias, widths)


def empty_columns(like: Tensor, rows: int, widths: Sequence[int]) -> list[Tensor]:
    """Return uninitialised tensors [rows, width] that are columns of one tensor."""
    total = sum(widths)
    stride = -(-total // ALIGNMENT) * ALIGNMENT
    return list(like.new_empty(rows, stride)[:, :total].split(list(widths), dim=1))


class _JointProjection(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, widths: tuple[int, ...]
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(inputs, weight)
        (out,) = empty_columns(inputs, len(inputs), [sum(widths)])
        if bias is None:
            torch.mm(inputs, weight.T, out=out)
        else:
            torch.addmm(bias, inputs, weight.T, out=out)
        return out.split(list(widths), dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        for_inputs, for_weight, for_bias, _ = ctx.needs_input_grad
        is_joint = not torch.is_grad_enabled() and _are_columns(grads)
        grad = _join(grads) if is_joint else torch.cat(grads, dim=1)
        return (
            grad @ weight if for_inputs else None,
            grad.T @ inputs if for_weight else None,
            grad.sum(dim=0) if for_bias else None,
            None,
        )


def _are_columns(parts: Sequence[Tensor]) -> bool:
    """Whether the parts [N, width] are adjacent columns of one tensor."""
    first = parts[0]
    storage, place = first.untyped_storage().data_ptr(), first.data_ptr()
    for part in parts:
        if part.untyped_storage().data_ptr() != storage or part.data_ptr() != place:
            return False
        if part.stride() != first.stride() or part.stride(1) != 1:
            return False
        place += part.shape[1] * part.element_size()
    return True


def _join(parts: Sequence[Tensor]) -> Tensor:
    first = parts[0]
    return first.as_strided((len(first), sum(part.shape[1] for part in parts)), first.stride())
