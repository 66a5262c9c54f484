"""Residual sum with dropout and a norm."""

from torch import Tensor, nn

from zoo.plugin import has_hooks, why_not_triton

_MAX_WIDTH = 8192


def residual_norm(
    x: Tensor, y: Tensor, dropout: nn.Dropout, norm: nn.Module, bias: Tensor | None = None
) -> Tensor:
    """Compute norm(x + dropout(y + bias)) of x, y [B, T, D] in one kernel, see `why_not_fused`."""
    from zoo_transformer.kernels.residual_norm import fused_residual_norm

    assert isinstance(norm, nn.LayerNorm)
    return fused_residual_norm(x, y, bias, norm, dropout.p if dropout.training else 0.0)


def why_not_fused(x: Tensor, dropout: nn.Dropout, norm: nn.Module) -> str | None:
    """Return the reason why dropout, sum and norm are not computed in one kernel, or None."""
    if not isinstance(norm, nn.LayerNorm) or norm.weight is None or norm.bias is None:
        return "the norm is not LayerNorm with weight and bias"
    if x.shape[-1] > _MAX_WIDTH or x.numel() == 0:
        return f"the shape is {list(x.shape)}"
    if has_hooks(dropout) or has_hooks(norm):
        return "the dropout or the norm has module hooks"
    return why_not_triton(x, norm.weight)
