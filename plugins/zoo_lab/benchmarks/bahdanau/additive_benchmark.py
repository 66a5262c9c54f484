"""Additive attention as it is measured, and as textbooks write it.

Notation: B batch, T queries, S keys, D width.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import Mask
from zoo_lab.bench.benchmark import Benchmark, Bound

Size = Annotated[int, Field(ge=1)]
Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
NAMES = ("query", "keys", "values", "v")
OPERATIONS_PER_RECIPROCAL = 213.0
"""An H200 computes 16 reciprocals per cycle and multiprocessor, and so many operations of a matrix
product in the time of one."""


class AdditiveBenchmark(Benchmark):
    """Additive attention without projections: scores, softmax and weighted sum.

    Args:
        batch: number of sequences, B.
        length: number of queries and of keys, T = S.
        dim: width of queries, keys and values, D.
    """

    def __init__(self, *, batch: Size, length: Size, dim: Size) -> None:
        self.batch, self.length, self.dim = batch, length, dim

    def prepare(self, device: torch.device) -> None:
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.inputs = _sample(self.batch, self.length, self.dim, device, dtype)
        self.grad = torch.randn_like(self.inputs[0])

    def check(self) -> None:
        """Compare context and gradients with the formula in float64, on other random inputs."""
        device = self.inputs[0].device
        size = min(self.batch, 3), min(self.length, 257), min(self.dim, 129)
        tolerances = {torch.float32: 1e-4, torch.bfloat16: 3e-2}
        for dtype in dict.fromkeys((torch.float32, self.grad.dtype)):
            tolerance = tolerances[dtype]
            inputs = _sample(*size, device, dtype)
            exact = [part.detach().double().requires_grad_() for part in inputs]
            grad = torch.randn_like(inputs[0])
            found = [attend(*inputs).detach(), *_gradients(attend, inputs, grad)]
            expected = [textbook(*exact).detach(), *_gradients(textbook, exact, grad.double())]
            for name, ours, theirs in zip(("context", *NAMES), found, expected, strict=True):
                difference = float((ours.double() - theirs).norm() / theirs.norm().clamp(min=1e-9))
                assert difference < tolerance, f"{name} differs by {difference:.1e} in {dtype}"

    def run(self) -> Any:
        return self.measured(attend)

    def measured(self, function: Attend) -> Any:
        """Run the forward and the backward pass of a function."""
        return _gradients(function, self.inputs, self.grad)

    def bound(self) -> Bound:
        """Reading the inputs and the gradient, writing the context and the gradients; one and a
        half reciprocals for each pair and hidden unit."""
        states = self.batch * self.length * self.dim
        reciprocals = 1.5 * states * self.length
        return Bound(
            bytes=8 * self.grad.element_size() * states,
            operations=OPERATIONS_PER_RECIPROCAL * reciprocals,
        )


def attend(query: Tensor, keys: Tensor, values: Tensor, v: Tensor) -> Tensor:
    """Compute the context [B, T, D] as the scorer 'additive', on the fused path if there is one."""
    from zoo_fast.attention.additive_scores import additive_scores
    from zoo_fast.attention.fused_additive import fused_additive

    context = fused_additive(query[:, None], keys[:, None], v, values[:, None], Mask())
    if context is not None:
        return context.squeeze(1)
    return additive_scores(query, keys, v).softmax(dim=-1) @ values


def textbook(query: Tensor, keys: Tensor, values: Tensor, v: Tensor) -> Tensor:
    """Compute the context with a tensor [B, T, S, D]."""
    scores = (torch.tanh(query[:, :, None] + keys[:, None]) * v).sum(dim=-1)
    dtype = torch.promote_types(scores.dtype, torch.float32)
    return torch.softmax(scores.to(dtype), dim=-1).to(values.dtype) @ values


def _sample(
    batch: int, length: int, dim: int, device: torch.device, dtype: torch.dtype
) -> list[Tensor]:
    """Return query, keys and values [B, T, D], and v [D]."""
    shapes = [(batch, length, dim)] * 3 + [(dim,)]
    return [torch.randn(s, device=device, dtype=dtype, requires_grad=True) for s in shapes]


def _gradients(function: Attend, inputs: Sequence[Tensor], grad: Tensor) -> Sequence[Tensor]:
    query, keys, values, v = inputs
    return torch.autograd.grad(function(query, keys, values, v), list(inputs), grad)
