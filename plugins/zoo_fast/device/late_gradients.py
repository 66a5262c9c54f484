"""Gradients of parameters on a second stream, beside the rest of a captured backward pass.

The gradient of a layer's inputs is needed by the layer before it, those of its parameters only by
the optimiser. Their kernels use the device together with others that do not fill it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Compute = Callable[[], Sequence[Tensor | None]]
Groups = tuple[tuple[Tensor, ...], ...]
Result = TypeVar("Result")
_ACTIVE = threading.local()
_RUNNING = 8
"""Number of computations whose inputs are kept in memory."""


class LateGradients:
    """Computes gradients of parameters on a second stream, and adds them after a backward pass.

    Args:
        stream: the second stream; None to compute them at once.
    """

    def __init__(self, stream: torch.cuda.Stream | None) -> None:
        self.stream = stream
        self.is_open = False
        self._running: deque[tuple[Any, Callable[[], Any]]] = deque()
        self._gradients: list[tuple[tuple[Tensor, ...], Tensor]] = []
        self._sums: list[tuple[Tensor, Callable[[Tensor], None]]] = []
        self._ends: list[Callable[[], None]] = []

    @contextmanager
    def use(self) -> Iterator[None]:
        """Use this object in the layers that are called by this thread inside the block."""
        before = getattr(_ACTIVE, "late", None)
        _ACTIVE.late = self
        try:
            yield
        finally:
            _ACTIVE.late = before

    def backward(self, loss: Tensor) -> None:
        """Compute the gradients of a loss that was computed inside `use`, and add them to
        ``grad`` of the parameters."""
        self.is_open = True
        loss.backward()  # type: ignore[no-untyped-call]
        self.is_open = False
        for end in self._ends:
            end()
        if self.stream is not None and self._running:
            torch.cuda.current_stream().wait_stream(self.stream)
        self._running.clear()
        for parameters, gradient in self._gradients:
            parts = torch.split(gradient, [len(each) for each in parameters])
            for parameter, part in zip(parameters, parts, strict=True):
                parameter.grad = part if parameter.grad is None else parameter.grad + part
        for parameter, add_to in self._sums:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            add_to(parameter.grad)
        self._gradients.clear()
        self._sums.clear()
        self._ends.clear()

    def add(self, groups: Groups, compute: Compute) -> None:
        """Compute one gradient for each group of parameters, which are joined along dimension 0."""
        self._check_open()
        computed = self.run(compute)
        for parameters, gradient in zip(groups, computed, strict=True):
            if parameters:
                assert gradient is not None
                self._gradients.append((parameters, gradient))

    def run(self, compute: Callable[[], Result]) -> Result:
        """Call a function on the second stream. It keeps the tensors that it reads."""
        if self.stream is None:
            return compute()
        current = torch.cuda.current_stream()
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            computed = compute()
            done = self.stream.record_event()
        # The inputs must not be freed, and their memory used again, before they were read.
        self._running.append((done, compute))
        if len(self._running) > _RUNNING:
            oldest, _ = self._running.popleft()
            current.wait_event(oldest)
        return computed

    def add_gradient(self, parameter: Tensor, gradient: Tensor) -> None:
        """Add the values that a tensor has at the end of the backward pass to the gradient."""
        self._gradients.append(((parameter,), gradient))

    def before_end(self, function: Callable[[], None]) -> None:
        """Call a function after the backward pass, before gradients are added."""
        self._ends.append(function)

    def add_in_place(self, parameter: Tensor, add_to: Callable[[Tensor], None]) -> None:
        """Add to the gradient of a parameter, with a function that updates it in place."""
        self._check_open()
        self._sums.append((parameter, add_to))

    def _check_open(self) -> None:
        if not self.is_open or torch.is_grad_enabled():
            raise RuntimeError(
                "a layer was differentiated outside of the backward pass of the training step, or "
                "twice, which cannot be captured"
            )


@dataclass(frozen=True)
class LateParameters:
    """Groups of parameters of a layer whose gradients are computed by `LateGradients`."""

    late: LateGradients
    groups: Groups

    def add(self, compute: Compute) -> None:
        """Compute the gradient of each group; None for an empty one."""
        self.late.add(self.groups, compute)

    def add_in_place(self, add_to: Callable[[Tensor], None]) -> None:
        """Add to the gradient of the only parameter, with a function that updates it in place."""
        ((parameter,),) = self.groups
        self.late.add_in_place(parameter, add_to)


def late_parameters(inputs: Tensor, *groups: Sequence[Tensor]) -> LateParameters | None:
    """Return the parameters if their gradients are to be computed late, None otherwise.

    They then have to be detached in the forward pass of the layer, and in its backward pass passed
    to `add`. The inputs of the layer must need a gradient, so that this is called.
    """
    late: LateGradients | None = getattr(_ACTIVE, "late", None)
    if late is None or not inputs.requires_grad or not torch.is_grad_enabled():
        return None
    parameters = [parameter for group in groups for parameter in group]
    if not all(_can_be_late(parameter, inputs) for parameter in parameters):
        return None
    return LateParameters(late, tuple(tuple(group) for group in groups))


def _can_be_late(parameter: Tensor, inputs: Tensor) -> bool:
    return (
        type(parameter) is nn.Parameter
        and parameter.requires_grad
        and parameter.dtype == inputs.dtype
        and not parameter._backward_hooks
        and not parameter._post_accumulate_grad_hooks
        and not torch.is_autocast_enabled(inputs.device.type)
    )
