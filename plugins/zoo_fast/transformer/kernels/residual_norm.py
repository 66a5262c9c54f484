"""Bias, dropout, residual sum and LayerNorm or RMSNorm in one kernel, forward and backward.

Notation: N rows, D width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor, nn

from zoo_fast.device.column_sums import add_partials
from zoo_fast.device.late_gradients import LateParameters, late_parameters
from zoo_fast.transformer.kernels.residual_norm_rows import (
    backward_rows,
    dropout_rows,
    forward_rows,
)
from zoo_transformer.norm import RMSNorm

_PROGRAMS = 1056
"""Programs of the backward pass: eight for each multiprocessor of an H200."""
_FORWARD, _BACKWARD = 512, 1024
"""Elements of the rows that a program processes together."""


class NormedSum(NamedTuple):
    """A normalised sum, the same again, whose gradients are added in the kernel of the backward
    pass, and the sum."""

    normed: Tensor
    again: Tensor
    summed: Tensor


def fused_residual_norm(
    x: Tensor,
    y: Tensor,
    y_bias: Tensor | None,
    norm: nn.LayerNorm | RMSNorm,
    dropout_p: float,
    seed: Tensor | None,
    dtype: torch.dtype,
) -> NormedSum:
    """Compute norm(x + dropout(y + y_bias)) of x, y [..., D] and y_bias [D].

    Sums are computed in float32. It can be differentiated twice.

    Args:
        seed: a random integer [1] for dropout; None if dropout_p is 0.
        dtype: that of the norm.
    """
    D = x.shape[-1]
    weight: Tensor = norm.weight
    bias: Tensor | None = norm.bias if isinstance(norm, nn.LayerNorm) else None
    late = late_parameters(x, [weight], *([] if b is None else [b] for b in (bias, y_bias)))
    if late is not None:
        weight = weight.detach()
        bias, y_bias = (None if b is None else b.detach() for b in (bias, y_bias))
    outputs = _ResidualNorm.apply(  # type: ignore[no-untyped-call]
        x.reshape(-1, D),
        y.reshape(-1, D),
        y_bias,
        weight,
        bias,
        seed,
        dropout_p,
        norm.eps,
        dtype,
        late,
    )
    return NormedSum(*(output.view(x.shape) for output in outputs))


class _ResidualNorm(torch.autograd.Function):
    """Returns the normalised sum, the same again, and the sum, all [N, D].

    The sum is an output so that the backward pass, which uses it, can be differentiated.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        y_bias: Tensor | None,
        weight: Tensor,
        bias: Tensor | None,
        seed: Tensor | None,
        p: float,
        eps: float,
        dtype: torch.dtype,
        late: LateParameters | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        x, y = x.contiguous(), y.contiguous()
        N, D = x.shape
        summed = torch.empty_like(x, dtype=torch.promote_types(x.dtype, y.dtype))
        out = torch.empty_like(x, dtype=dtype)
        mean, rstd = torch.empty(2, N, dtype=torch.float32, device=x.device)
        launch = _launch(D, _FORWARD)
        forward_rows[(triton.cdiv(N, launch["ROWS"]),)](
            *(x, y, y_bias, weight, bias, seed, summed, out, mean, rstd, N, D, p, eps),
            HAS_BIAS=y_bias is not None,
            DROPOUT=seed is not None,
            RMS=bias is None,
            **launch,
        )
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(summed, mean, rstd, weight, seed)
        ctx.p, ctx.eps, ctx.late, ctx.rms = p, eps, late, bias is None
        ctx.dtypes = (x.dtype, y.dtype, None if y_bias is None else y_bias.dtype)
        return out, out.view_as(out), summed

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor | None, second: Tensor | None, sum_grad: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        summed, mean, rstd, weight, seed = ctx.saved_tensors
        grad, second = (second, None) if grad is None else (grad, second)
        grad = torch.zeros_like(summed) if grad is None else grad.contiguous()
        if ctx.late is None and torch.is_grad_enabled():  # the backward pass is differentiated
            grad = grad if second is None else grad + second
            return (*_differentiable(ctx, grad, sum_grad), *(None,) * 5)
        x_dtype, y_dtype, y_bias_dtype = ctx.dtypes
        N, D = summed.shape
        others = [None if t is None else t.contiguous() for t in (second, sum_grad)]
        grad_x = torch.empty_like(summed, dtype=x_dtype)
        grad_y = torch.empty_like(summed, dtype=y_dtype) if seed is not None else grad_x
        launch = _launch(D, _BACKWARD)
        programs = min(triton.cdiv(N, launch["ROWS"]), _PROGRAMS)
        has_bias = y_bias_dtype is not None
        summed_over_rows = 1 + (not ctx.rms) + has_bias
        partial = torch.empty(
            summed_over_rows, programs, D, dtype=torch.float32, device=grad.device
        )
        backward_rows[(programs,)](
            *(grad, *others, summed, mean, rstd, weight, seed),
            *(grad_x, grad_y, partial, N, D, ctx.p),
            HAS_BIAS=has_bias,
            DROPOUT=seed is not None,
            SECOND=second is not None,
            SUM_GRAD=sum_grad is not None,
            RMS=ctx.rms,
            **launch,
        )

        def of_parameters() -> tuple[Tensor | None, ...]:
            """Return the gradients of the weight, the bias of the norm and that of y."""
            weight_grad, *biases = add_partials(partial, weight.dtype).unbind()
            bias_grad = None if ctx.rms else biases.pop(0)
            return weight_grad, bias_grad, biases[0].to(y_bias_dtype) if has_bias else None

        if ctx.late is not None:
            ctx.late.add(of_parameters)
            return grad_x, grad_y.to(y_dtype), *(None,) * 8
        *of_norm, of_y_bias = of_parameters()
        return grad_x, grad_y.to(y_dtype), of_y_bias, *of_norm, *(None,) * 5


def _differentiable(ctx: Any, grad: Tensor, sum_grad: Tensor | None) -> tuple[Tensor | None, ...]:
    """Compute the gradients with operations that can be differentiated."""
    summed, _, _, weight, seed = ctx.saved_tensors
    x_dtype, y_dtype, y_bias_dtype = ctx.dtypes
    z, upper = summed.float(), grad.float()
    centred = z if ctx.rms else z - z.mean(dim=-1, keepdim=True)
    rstd = (centred.square().mean(dim=-1, keepdim=True) + ctx.eps).rsqrt()
    normed, scaled = centred * rstd, upper * weight.float()
    along = (scaled * normed).mean(dim=-1, keepdim=True)
    grad_z = scaled - normed * along
    grad_z = (grad_z if ctx.rms else grad_z - scaled.mean(dim=-1, keepdim=True)) * rstd
    if sum_grad is not None:
        grad_z = grad_z + sum_grad.float()
    factors = torch.ones_like(z)
    if seed is not None:
        N, D = z.shape
        launch = _launch(D, _FORWARD)
        dropout_rows[(triton.cdiv(N, launch["ROWS"]),)](seed, factors, N, D, ctx.p, **launch)
    grad_y = grad_z * factors
    return (
        grad_z.to(x_dtype),
        grad_y.to(y_dtype),
        None if y_bias_dtype is None else grad_y.sum(dim=0).to(y_bias_dtype),
        (upper * normed).sum(dim=0).to(weight.dtype),
        None if ctx.rms else upper.sum(dim=0).to(weight.dtype),
    )


def _launch(D: int, elements: int) -> dict[str, int]:
    block = max(4, triton.next_power_of_2(D))
    rows = max(1, elements // block)
    return {"ROWS": rows, "BLOCK": block, "num_warps": max(1, min(8, block * rows // 512))}
