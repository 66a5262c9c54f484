"""Residual sum with dropout and a norm."""

from torch import Tensor, nn

from zoo.plugin import has_hooks, why_not_triton

_MAX_WIDTH = 8192


def residual_norm(x: Tensor, y: Tensor, dropout: nn.Dropout, norm: nn.Module) -> Tensor:
    """Compute norm(x + dropout(y)) of x, y [B, T, D], in one kernel if it is possible."""
    if isinstance(norm, nn.LayerNorm) and why_not_fused(x, y, dropout, norm) is None:
        from zoo_transformer.kernels.residual_norm import fused_residual_norm

        return fused_residual_norm(x, y, norm, dropout.p if dropout.training else 0.0)
    result: Tensor = norm(x + dropout(y))
    return result


def why_not_fused(x: Tensor, y: Tensor, dropout: nn.Dropout, norm: nn.LayerNorm) -> str | None:
    """Return the reason why dropout, sum and norm are not computed in one kernel, or None."""
    if norm.weight is None or norm.bias is None:
        return "the norm has no weight or bias"
    if x.shape[-1] > _MAX_WIDTH or x.numel() == 0:
        return f"the shape is {list(x.shape)}"
    if has_hooks(dropout) or has_hooks(norm):
        return "the dropout or the norm has module hooks"
    return why_not_triton(x, y, norm.weight)
