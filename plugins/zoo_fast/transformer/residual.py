"""Residual sum with dropout and a norm."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from zoo_fast.device.triton_support import why_not_triton

_MAX_WIDTH = 8192


def residual_norm(
    x: Tensor,
    y: Tensor,
    dropout: nn.Dropout,
    norm: nn.Module,
    bias: Tensor | None = None,
    seed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute norm(x + dropout(y + bias)) of x, y [B, T, D] in one kernel.

    It is returned twice, for the next sublayer and for its residual sum.

    Args:
        seed: a random integer [1] for dropout; drawn from torch's generator if it is None.
    """
    from zoo_fast.transformer.kernels.residual_norm import fused_residual_norm

    assert isinstance(norm, nn.LayerNorm)
    p = dropout.p if dropout.training else 0.0
    if p > 0 and seed is None:
        (seed,) = draw_seeds(1, x)
    return fused_residual_norm(x, y, bias, norm, p, seed if p > 0 else None)


def draw_seeds(count: int, like: Tensor) -> Sequence[Tensor]:
    """Return random integers, each [1], from torch's generator of the device."""
    return torch.randint(2**31, (count,), device=like.device).split(1)  # type: ignore[no-untyped-call, no-any-return]


def why_not_residual_norm(x: Tensor, norm: nn.Module) -> str | None:
    """Return the reason why dropout, sum and norm are not computed in one kernel, or None."""
    reason = why_not_norm(norm)
    if reason is not None:
        return reason
    if x.shape[-1] > _MAX_WIDTH or x.numel() == 0:
        return f"the shape is {list(x.shape)}"
    assert isinstance(norm.weight, Tensor)
    return why_not_triton(x, norm.weight)


def why_not_norm(norm: nn.Module) -> str | None:
    """Return the reason why the kernel does not support a norm, or None if it does."""
    if type(norm) is nn.LayerNorm and norm.weight is not None and norm.bias is not None:
        return None
    return "the norm is not LayerNorm with weight and bias"
