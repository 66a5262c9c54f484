"""Linear layer with ReLU: the activation is part of the matrix product, and its gradient is
computed together with that of the bias.

Notation: N rows, D width, H hidden width.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from zoo_fast.device.column_sums import add_partials
from zoo_fast.device.late_gradients import LateParameters, late_parameters

_ROWS, _COLUMNS = 64, 128


def relu_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute relu(x W^T + b) of x [..., D], weight [H, D], bias [H]."""
    late = late_parameters(x, [weight], [bias])
    if late is not None:
        weight, bias = weight.detach(), bias.detach()
    if torch.is_autocast_enabled(x.device.type):
        dtype = torch.get_autocast_dtype(x.device.type)
        x, weight, bias = x.to(dtype), weight.to(dtype), bias.to(dtype)
    rows = x.reshape(-1, x.shape[-1])
    out: Tensor = _ReluLinear.apply(rows, weight, bias, late)  # type: ignore[no-untyped-call]
    return out.view(*x.shape[:-1], -1)


class _ReluLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, late: LateParameters | None
    ) -> Tensor:
        out = torch._addmm_activation(bias, x, weight.T, use_gelu=False)
        ctx.save_for_backward(x, weight, out)
        ctx.late = late
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, out = ctx.saved_tensors
        late: LateParameters | None = ctx.late
        if late is None and torch.is_grad_enabled():  # the backward pass is differentiated
            masked = grad * (out > 0)
            return masked @ weight, masked.T @ x, masked.sum(dim=0), None
        masked, partial = relu_gradients(grad.contiguous(), out)

        def parameters() -> tuple[Tensor, Tensor]:
            return masked.T @ x, add_partials(partial, grad.dtype)[0]

        if late is None:
            return masked @ weight, *parameters(), None
        late.add(parameters)
        return masked @ weight, None, None, None


def relu_gradients(grad: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient [N, H] where the output is positive, and parts of its sum over rows."""
    N, H = out.shape
    blocks = triton.cdiv(N, _ROWS)
    masked = torch.empty_like(grad)
    partial = torch.empty(1, blocks, H, dtype=torch.float32, device=grad.device)
    _relu_gradients[(blocks, triton.cdiv(H, _COLUMNS))](
        grad, out, masked, partial, N, H, ROWS=_ROWS, COLUMNS=_COLUMNS, num_warps=8
    )
    return masked, partial


@triton.jit
def _relu_gradients(
    grad_ptr,
    out_ptr,
    masked_ptr,
    partial_ptr,
    N,
    H,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row[:, None] < N) & (column[None] < H)
    at = row[:, None].to(tl.int64) * H + column[None]
    grad = tl.load(grad_ptr + at, mask=inside, other=0.0)
    out = tl.load(out_ptr + at, mask=inside, other=0.0)
    masked = tl.where(out > 0, grad, 0.0)
    tl.store(masked_ptr + at, masked, mask=inside)
    summed = tl.sum(masked.to(tl.float32), axis=0)
    tl.store(partial_ptr + tl.program_id(0) * H + column, summed, mask=column < H)
