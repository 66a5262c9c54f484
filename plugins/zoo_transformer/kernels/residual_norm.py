"""Dropout, residual sum and LayerNorm in one kernel, forward and backward.

Notation: N rows, D width.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor, nn

from zoo_transformer.kernels.residual_norm_rows import backward_rows, dropout_rows, forward_rows

_PROGRAMS = 264
"""Programs of the backward pass: two for each multiprocessor of an H200."""


def fused_residual_norm(x: Tensor, y: Tensor, norm: nn.LayerNorm, dropout_p: float) -> Tensor:
    """Compute norm(x + dropout(y)) of x, y [..., D].

    Sums are computed in float32. The random numbers of dropout come from one number of torch's
    generator. It can be differentiated twice.
    """
    shape = x.shape
    seed = None
    if dropout_p > 0:
        seed = torch.randint(2**31, (1,), device=x.device)
    autocast = torch.is_autocast_enabled(x.device.type)
    dtype = torch.float32 if autocast else torch.promote_types(x.dtype, y.dtype)
    out, _ = _ResidualNorm.apply(  # type: ignore[no-untyped-call]
        x.reshape(-1, shape[-1]),
        y.reshape(-1, shape[-1]),
        norm.weight,
        norm.bias,
        seed,
        dropout_p,
        norm.eps,
        dtype,
    )
    result: Tensor = out.view(shape)
    return result


class _ResidualNorm(torch.autograd.Function):
    """Returns the normalised sum and the sum, both [N, D].

    The sum is an output so that the backward pass, which uses it, can be differentiated.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        bias: Tensor,
        seed: Tensor | None,
        p: float,
        eps: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        x, y = x.contiguous(), y.contiguous()
        N, D = x.shape
        summed = torch.empty_like(x, dtype=torch.promote_types(x.dtype, y.dtype))
        out = torch.empty_like(x, dtype=dtype)
        mean, rstd = torch.empty(2, N, dtype=torch.float32, device=x.device)
        forward_rows[(N,)](
            *(x, y, weight, bias, seed, summed, out, mean, rstd, D, p, eps),
            DROPOUT=seed is not None,
            **_launch(D),
        )
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(summed, mean, rstd, weight, seed)
        ctx.p, ctx.eps, ctx.dtypes = p, eps, (x.dtype, y.dtype)
        return out, summed

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor | None, sum_grad: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        summed, mean, rstd, weight, seed = ctx.saved_tensors
        grad = torch.zeros_like(summed) if grad is None else grad.contiguous()
        if torch.is_grad_enabled():
            return (*_differentiable(ctx, grad, sum_grad), *(None,) * 4)
        N, D = summed.shape
        sum_grad = None if sum_grad is None else sum_grad.contiguous()
        grad_x = torch.empty_like(summed, dtype=ctx.dtypes[0])
        separate = seed is not None or ctx.dtypes[1] != ctx.dtypes[0]
        grad_y = torch.empty_like(summed, dtype=ctx.dtypes[1]) if separate else grad_x
        programs = min(N, _PROGRAMS)
        partial = torch.empty(2, programs, D, dtype=torch.float32, device=grad.device)
        backward_rows[(programs,)](
            *(grad, sum_grad, summed, mean, rstd, weight, seed),
            *(grad_x, grad_y, partial, N, D, ctx.p),
            DROPOUT=seed is not None,
            SUM_GRAD=sum_grad is not None,
            **_launch(D),
        )
        if separate and seed is None:
            grad_y.copy_(grad_x)
        grad_weight, grad_bias = partial.sum(dim=1).to(weight.dtype)
        return grad_x, grad_y, grad_weight, grad_bias, None, None, None, None


def _differentiable(ctx: Any, grad: Tensor, sum_grad: Tensor | None) -> tuple[Tensor, ...]:
    """Compute the gradients with operations that can be differentiated."""
    summed, _, _, weight, seed = ctx.saved_tensors
    z, upper = summed.float(), grad.float()
    centred = z - z.mean(dim=-1, keepdim=True)
    rstd = (centred.square().mean(dim=-1, keepdim=True) + ctx.eps).rsqrt()
    normed, scaled = centred * rstd, upper * weight.float()
    along = (scaled * normed).mean(dim=-1, keepdim=True)
    grad_z = (scaled - normed * along - scaled.mean(dim=-1, keepdim=True)) * rstd
    if sum_grad is not None:
        grad_z = grad_z + sum_grad.float()
    factors = torch.ones_like(z)
    if seed is not None:
        N, D = z.shape
        dropout_rows[(N,)](seed, factors, D, ctx.p, **_launch(D))
    return (
        grad_z.to(ctx.dtypes[0]),
        (grad_z * factors).to(ctx.dtypes[1]),
        (upper * normed).sum(dim=0).to(weight.dtype),
        upper.sum(dim=0).to(weight.dtype),
    )


def _launch(D: int) -> dict[str, int]:
    block = max(4, triton.next_power_of_2(D))
    return {"BLOCK": block, "num_warps": max(1, min(8, block // 256))}
