"""Residual sum with dropout and a norm."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from zoo.acceleration import plain_class
from zoo_fast.active_dropout import active_p
from zoo_fast.device.triton_support import why_not_triton
from zoo_transformer.norm import RMSNorm

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
    autocast = torch.is_autocast_enabled(x.device.type)
    dtype = torch.float32 if autocast else torch.promote_types(x.dtype, y.dtype)
    normed, again, _ = _normed_sum(x, y, dropout, norm, bias, seed, dtype)
    return normed, again


def residual_before_norm(
    x: Tensor,
    y: Tensor,
    dropout: nn.Dropout,
    norm: nn.Module,
    bias: Tensor | None = None,
    seed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute z = x + dropout(y + bias), and return norm(z) and z, in one kernel.

    With autocast the norm is in its dtype, which the next product uses. The arguments are those of
    `residual_norm`.
    """
    device = x.device.type
    dtype = torch.promote_types(x.dtype, y.dtype)
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    normed, _, summed = _normed_sum(x, y, dropout, norm, bias, seed, dtype)
    return normed, summed


def _normed_sum(
    x: Tensor,
    y: Tensor,
    dropout: nn.Dropout,
    norm: nn.Module,
    bias: Tensor | None,
    seed: Tensor | None,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    from zoo_fast.transformer.kernels.residual_norm import fused_residual_norm

    assert isinstance(norm, (nn.LayerNorm, RMSNorm))
    p = active_p(dropout)
    if p > 0 and seed is None:
        (seed,) = draw_seeds(1, x)
    return fused_residual_norm(x, y, bias, norm, p, seed if p > 0 else None, dtype)


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
    if plain_class(norm) is RMSNorm:
        return None
    if type(norm) is nn.LayerNorm and norm.weight is not None and norm.bias is not None:
        return None
    return "the norm is neither RMSNorm nor LayerNorm with weight and bias"
