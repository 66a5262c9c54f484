"""Product of a gate with SiLU and the values that it gates, in one Triton kernel."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def silu_product(gate: Tensor, values: Tensor) -> Tensor:
    """Compute silu(gate) * values of tensors of the same shape. It can be differentiated twice."""
    product: Tensor = _SiluProduct.apply(gate, values)  # type: ignore[no-untyped-call]
    return product


class _SiluProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, values: Tensor) -> Tensor:
        gate, values = gate.contiguous(), values.contiguous()
        ctx.save_for_backward(gate, values)
        out = torch.empty_like(gate)
        _forward[_grid(gate)](gate, values, out, gate.numel(), BLOCK=_BLOCK)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        gate, values = ctx.saved_tensors
        if torch.is_grad_enabled():  # the backward pass is differentiated
            sigmoid = gate.sigmoid()
            slope = sigmoid * (1 + gate * (1 - sigmoid))
            return grad * values * slope, grad * gate * sigmoid
        grad = grad.contiguous()
        of_gate, of_values = torch.empty_like(gate), torch.empty_like(values)
        _backward[_grid(gate)](grad, gate, values, of_gate, of_values, gate.numel(), BLOCK=_BLOCK)
        return of_gate, of_values


def _grid(like: Tensor) -> tuple[int]:
    return (triton.cdiv(like.numel(), _BLOCK),)


@triton.jit
def _forward(gate_ptr, values_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < N, other=0.0).to(tl.float32)
    values = tl.load(values_ptr + at, mask=at < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, gate * tl.sigmoid(gate) * values, mask=at < N)


@triton.jit
def _backward(
    grad_ptr, gate_ptr, values_ptr, of_gate_ptr, of_values_ptr, N, BLOCK: tl.constexpr
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    grad = tl.load(grad_ptr + at, mask=at < N, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + at, mask=at < N, other=0.0).to(tl.float32)
    values = tl.load(values_ptr + at, mask=at < N, other=0.0).to(tl.float32)
    sigmoid = tl.sigmoid(gate)
    slope = sigmoid * (1.0 + gate * (1.0 - sigmoid))
    tl.store(of_gate_ptr + at, grad * values * slope, mask=at < N)
    tl.store(of_values_ptr + at, grad * gate * sigmoid, mask=at < N)
