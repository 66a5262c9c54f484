"""Concatenation whose gradients do not share memory."""

from typing import Any

import torch
from torch import Tensor


class _Concatenation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *parts: Tensor) -> Tensor:
        ctx.widths = [part.shape[-1] for part in parts]
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, ...]:
        return tuple(grad.clone() for grad in torch.split(grad_output, ctx.widths, dim=-1))


def concatenate(*parts: Tensor) -> Tensor:
    """Concatenate in the last dimension.

    The gradients of ``torch.cat`` are views of the whole gradient, which then stays in memory until
    the last of them has been used.
    """
    if torch.compiler.is_compiling():
        return torch.cat(parts, dim=-1)
    joined: Tensor = _Concatenation.apply(*parts)  # type: ignore[no-untyped-call]
    return joined
