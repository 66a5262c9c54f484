"""Additive scores without a tensor [..., T, S, D].

Notation: N batch and heads, T queries, S keys, D hidden width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from zoo_fast.device.triton_support import why_not_triton

LARGEST = 40.0
"""Limit of absolute values before the exponential."""
SATURATED = 20.0
"""Absolute value from which tanh is ±1. If only a or only b exceeds it, LARGEST changes nothing."""
TWO_LOG2_E = 2 / math.log(2)
SMALL = 2**20
"""Number of elements [n, t, s, D] below which the CPU uses the plain formula."""
CHUNK = 2**21
"""Number of elements [n, t, s, D] that are processed together on the CPU."""
CHUNK_OF_KEYS = 2**17
"""Number of elements [s, D] of the keys of a chunk."""


def additive_scores(a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    r"""Compute additive scores in little memory.

    .. math:: e_{ts} = \sum_d v_d \tanh(a_{td} + b_{sd})

    A Triton kernel is used on a GPU, and chunks on the CPU. Compiled models, small tensors on the
    CPU and gradients of gradients use the plain formula.

    Shapes:
        a [..., T, D], b [..., S, D] with equal leading dimensions, v [D] -> [..., T, S].
    """
    size = a.numel() * b.shape[-2]
    fused = size > 0 and why_not_triton(a, b, v) is None
    if not fused and (a.device.type != "cpu" or size < SMALL or torch.compiler.is_compiling()):
        return _formula(a, b, v)
    leading = a.shape[:-2]
    flat = [part.reshape(-1, *part.shape[-2:]) for part in (a, b)]
    function = _TritonScores if fused else _ChunkedScores
    apply: Callable[..., Tensor] = function.apply
    return apply(*flat, v).view(*leading, a.shape[-2], b.shape[-2])


def _formula(a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    scores: Tensor = (a[..., :, None, :] + b[..., None, :, :]).tanh() @ v
    return scores


class _TritonScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
        from zoo_fast.attention.kernels.additive_triton import exponentials, triton_scores

        terms = a.contiguous(), b.contiguous(), v[None].contiguous()
        exps = exponentials(*terms[:2])
        ctx.save_for_backward(a, b, v, exps[2])
        return triton_scores(terms, exps).to(a.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, ...]:
        from zoo_fast.attention.kernels.additive_triton import triton_gradients

        a, b, v, maxima = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_gradients((a, b, v), grad_output)
        terms = a.contiguous(), b.contiguous(), v[None].contiguous()
        g = grad_output.contiguous()
        grad_a, grad_b, grad_v = triton_gradients(terms, maxima, g, dtype=a.dtype)
        total = g.sum(dtype=torch.float32)
        return grad_a, grad_b, (grad_v[0] + total).to(v.dtype)


def _differentiable_gradients(
    inputs: tuple[Tensor, ...], grad_output: Tensor
) -> tuple[Tensor, ...]:
    """Compute the gradients of the formula, so that they have gradients themselves."""
    return torch.autograd.grad(_formula(*inputs), inputs, grad_output, create_graph=True)


class _ChunkedScores(torch.autograd.Function):
    """tanh(a + b) = 1 - 2 r and tanh' = 4 r (1 - r) with r = 1 / (1 + e^{2a} e^{2b})."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
        pairs = _Pairs.create(a, b)
        ctx.is_wide = pairs.is_wide
        ctx.save_for_backward(a, b, v, pairs.x, pairs.y)
        wide_v = v.to(pairs.x.dtype)
        scores = wide_v.new_empty(*a.shape[:2], b.shape[1])
        for n, t, s, r in pairs.reciprocals():
            scores[n, t, s] = r @ wide_v
        return scores.mul_(-2).add_(wide_v.sum()).to(a.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, ...]:
        a, b, v, x, y = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_gradients((a, b, v), grad_output)
        g = grad_output.to(x.dtype)
        grad_a, grad_b, g_r = torch.zeros_like(x), torch.zeros_like(y), x.new_zeros(v.shape)
        ones = x.new_ones(max(x.shape[1], y.shape[1]))
        for n, t, s, r in _Pairs(x, y, ctx.is_wide).reciprocals():
            weights = g[n, t, s]
            N, T, S, D = r.shape
            g_r += weights.reshape(-1) @ r.view(-1, D)
            terms = torch.ops.aten.sigmoid_backward.grad_input(
                weights[..., None], r, grad_input=r
            )  # weights * r (1 - r)
            # Sums as products are faster than `sum`.
            grad_a[n, t] += (ones[:S].expand(N, T, 1, S) @ terms).squeeze(2)
            sums = grad_b[n, s].view(N, 1, -1)
            sums.baddbmm_(ones[:T].expand(N, 1, T), terms.view(N, T, -1))
        factor = 4 * v
        return (
            grad_a.mul_(factor).to(a.dtype),
            grad_b.mul_(factor).to(b.dtype),
            (g.sum() - 2 * g_r).to(v.dtype),
        )


@dataclass(frozen=True)
class _Pairs:
    """Queries and keys as exponentials x = e^{2a} and y = e^{2b}, or their exponents of base 2."""

    x: Tensor
    y: Tensor
    is_wide: bool

    @classmethod
    def create(cls, a: Tensor, b: Tensor) -> Self:
        dtype = torch.promote_types(a.dtype, torch.float32)
        x, y = (part.to(dtype) * TWO_LOG2_E for part in (a, b))
        if min(_largest(x), _largest(y)) > SATURATED * TWO_LOG2_E:
            return cls(x, y, is_wide=True)
        largest = LARGEST * TWO_LOG2_E
        return cls(
            x.clamp_(-largest, largest).exp2_(), y.clamp_(-largest, largest).exp2_(), is_wide=False
        )

    def reciprocals(self) -> Iterator[tuple[slice, slice, slice, Tensor]]:
        """Yield slices of N, T and S with r [n, t, s, D] of these pairs, in one buffer."""
        (N, T, D), S = self.x.shape, self.y.shape[1]
        keys = min(S, max(1, CHUNK_OF_KEYS // D))
        queries = min(T, max(1, CHUNK // (D * keys)))
        items = min(N, max(1, CHUNK // (D * keys * queries)))
        one, buffer = self.x.new_ones(()), self.x.new_empty(items * queries * keys * D)
        for n in _slices(N, items):
            for s in _slices(S, keys):
                y = self.y[n, None, s]
                for t in _slices(T, queries):
                    x = self.x[n, t, None]
                    shape = (x.shape[0], x.shape[1], y.shape[2], D)
                    r = buffer[: math.prod(shape)].view(shape)
                    if self.is_wide:
                        torch.add(x, y, out=r).exp2_().add_(1)
                    else:
                        torch.addcmul(one, x, y, out=r)
                    yield n, t, s, r.reciprocal_()


def _largest(x: Tensor) -> float:
    """Return the largest absolute value."""
    smallest, largest = torch.aminmax(x)
    return max(float(largest), -float(smallest))


def _slices(size: int, step: int) -> Iterator[slice]:
    return (slice(first, min(first + step, size)) for first in range(0, size, step))
