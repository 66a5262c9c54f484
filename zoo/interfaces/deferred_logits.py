"""Logits that are computed when they are used, so that an objective can avoid them.

Notation: D width, V vocabulary.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_map_only

_DEFERRING: ContextVar[bool] = ContextVar("deferring", default=False)

_METADATA = frozenset(
    {
        Tensor.shape.__get__,  # type: ignore[attr-defined]
        Tensor.dtype.__get__,  # type: ignore[attr-defined]
        Tensor.device.__get__,
        Tensor.ndim.__get__,  # type: ignore[attr-defined]
        Tensor.dim,
        Tensor.size,
        Tensor.numel,
        Tensor.is_floating_point,
    }
)
"""What is known without computing the logits."""


class DeferredLogits(Tensor):
    """A tensor of logits that the first operation on it computes.

    .. math:: W h + b

    An objective that needs only a function of the logits can compute it from the parts.

    Attributes:
        states: [..., D].
        weight: [V, D].
        bias: [V], or None.
        padding: the row of the weight that receives no gradient, or None.
    """

    states: Tensor
    weight: Tensor
    bias: Tensor | None
    padding: int | None
    _computed: Tensor | None

    @staticmethod
    def __new__(
        cls, states: Tensor, weight: Tensor, *, bias: Tensor | None, padding: int | None
    ) -> DeferredLogits:
        logits: DeferredLogits = Tensor._make_wrapper_subclass(
            cls,
            (*states.shape[:-1], weight.shape[0]),
            dtype=compute_dtype(states),
            device=states.device,
        )
        logits.states, logits.weight = states, weight
        logits.bias, logits.padding = bias, padding
        logits._computed = None
        return logits

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            if func not in _METADATA:
                args, kwargs = tree_map_only(cls, cls.compute, (args, dict(kwargs or {})))
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        args, kwargs = tree_map_only(cls, cls.compute, (args, dict(kwargs or {})))
        return func(*args, **(kwargs or {}))

    def compute(self) -> Tensor:
        """Compute the logits, once."""
        if self._computed is None:
            weight = freeze_row(self.weight, self.padding)
            self._computed = F.linear(self.states, weight, self.bias)
        return self._computed


def compute_dtype(states: Tensor) -> torch.dtype:
    """Return the dtype of a matrix product with the states, which autocast changes."""
    if torch.is_autocast_enabled(states.device.type):
        return torch.get_autocast_dtype(states.device.type)
    return states.dtype


def freeze_row(table: Tensor, row: int | None) -> Tensor:
    """Return the table [V, D], of which one row receives no gradient."""
    if row is None or not torch.is_grad_enabled() or not table.requires_grad:
        return table
    trained = torch.arange(table.shape[0], device=table.device) != row
    return torch.where(trained[:, None], table, table.detach())


@contextlib.contextmanager
def defer_logits(enabled: bool) -> Iterator[None]:
    """Let `compute_logits` return deferred logits inside the block, if enabled."""
    token = _DEFERRING.set(enabled)
    try:
        yield
    finally:
        _DEFERRING.reset(token)


def compute_logits(states: Tensor, weight: Tensor, *, padding: int | None = None) -> Tensor:
    """Compute logits [..., V] of states [..., D] with the weight [V, D].

    Inside `defer_logits` the logits are computed when they are used.

    Args:
        padding: the row of the weight that receives no gradient.
    """
    if not torch.compiler.is_compiling() and _DEFERRING.get():
        return DeferredLogits(states, weight, bias=None, padding=padding)
    return F.linear(states, freeze_row(weight, padding))


def add_bias(logits: Tensor, bias: Tensor) -> Tensor:
    """Add a bias [V] to logits [..., V], without computing deferred logits."""
    if isinstance(logits, DeferredLogits) and logits.bias is None:
        return DeferredLogits(logits.states, logits.weight, bias=bias, padding=logits.padding)
    return logits + bias
