"""Gradients of ``torch.where`` without a new tensor of zero for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_WHERE = {torch.where, Tensor.where}


class Selections(TorchFunctionMode):
    """Replaces ``torch.where`` of two tensors of one shape inside the block.

    In its backward pass, torch fills a zero on the device for each of the two gradients. A
    recurrence that keeps its states at padding selects thousands of times.
    """

    def __init__(self) -> None:
        super().__init__()
        self._zeros: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func not in _WHERE or kwargs or len(args) != 3 or not torch.is_grad_enabled():
            return func(*args, **(kwargs or {}))
        # Tensor.where is a method of the first tensor, not of the condition.
        first, condition = args[:2] if func is Tensor.where else (args[1], args[0])
        other = args[2]
        if not _can_select(condition, first, other):
            return func(*args)
        zero = self._zero(first)
        return _Where.apply(condition, first, other, zero)  # type: ignore[no-untyped-call]

    def _zero(self, like: Tensor) -> Tensor:
        key = (like.dtype, like.device)
        if key not in self._zeros:
            self._zeros[key] = torch.zeros((), dtype=like.dtype, device=like.device)
        return self._zeros[key]


class _Where(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, condition: Tensor, first: Tensor, other: Tensor, zero: Tensor) -> Tensor:
        ctx.save_for_backward(condition, zero)
        return torch.where(condition, first, other)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        condition, zero = ctx.saved_tensors
        _, needs_first, needs_other, _ = ctx.needs_input_grad
        d_first = torch.where(condition, grad, zero) if needs_first else None
        return None, d_first, torch.where(condition, zero, grad) if needs_other else None, None


def _can_select(condition: Any, first: Any, other: Any) -> bool:
    return (
        all(type(tensor) is Tensor for tensor in (condition, first, other))
        and first.shape == other.shape
        and _expands_to(condition.shape, first.shape)
        and (first.dtype, first.device) == (other.dtype, other.device)
        and condition.device == first.device
        and (first.requires_grad or other.requires_grad)
    )


def _expands_to(shape: torch.Size, result: torch.Size) -> bool:
    sizes = zip(reversed(shape), reversed(result), strict=False)
    return len(shape) <= len(result) and all(size in (1, other) for size, other in sizes)
