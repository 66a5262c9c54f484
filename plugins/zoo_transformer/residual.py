"""Residual sum with dropout and a norm."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from zoo.plugin import has_hooks, late_parameters, why_not_triton

_MAX_WIDTH = 8192


def residual_norm(
    x: Tensor,
    y: Tensor,
    dropout: nn.Dropout,
    norm: nn.Module,
    bias: Tensor | None = None,
    seed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute norm(x + dropout(y + bias)) of x, y [B, T, D] in one kernel, see `why_not_fused`.

    It is returned twice, for the next sublayer and for its residual sum.

    Args:
        seed: a random integer [1] for dropout; drawn from torch's generator if it is None.
    """
    from zoo_transformer.kernels.residual_norm import fused_residual_norm

    assert isinstance(norm, nn.LayerNorm)
    p = dropout.p if dropout.training else 0.0
    if p > 0 and seed is None:
        (seed,) = draw_seeds(1, x)
    return fused_residual_norm(x, y, bias, norm, p, seed if p > 0 else None)


def keep_again(x: Tensor, second: Tensor) -> Tensor:
    """Return the first output of `residual_norm`; in a recorded step, `again` then returns the
    second one, so that the kernel adds their gradients. Elsewhere the gradient of x may be read."""
    if late_parameters(x) is not None:
        x._again = second  # type: ignore[attr-defined]
    return x


def again(x: Tensor) -> Tensor:
    """Return the second output of `residual_norm` if it was kept with the first one, x; else x."""
    second: Tensor = getattr(x, "_again", x)
    return second


def draw_seeds(count: int, like: Tensor) -> Sequence[Tensor]:
    """Return random integers, each [1], from torch's generator of the device."""
    return torch.randint(2**31, (count,), device=like.device).split(1)  # type: ignore[no-untyped-call, no-any-return]


def why_not_fused(x: Tensor, dropout: nn.Dropout, norm: nn.Module) -> str | None:
    """Return the reason why dropout, sum and norm are not computed in one kernel, or None."""
    if not isinstance(norm, nn.LayerNorm) or norm.weight is None or norm.bias is None:
        return "the norm is not LayerNorm with weight and bias"
    if x.shape[-1] > _MAX_WIDTH or x.numel() == 0:
        return f"the shape is {list(x.shape)}"
    if has_hooks(dropout) or has_hooks(norm):
        return "the dropout or the norm has module hooks"
    return why_not_triton(x, norm.weight)
