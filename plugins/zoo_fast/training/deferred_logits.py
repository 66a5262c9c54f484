"""Logits that are computed when they are used, so that an objective can avoid them.

Notation: D width, V vocabulary.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import singledispatch
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_map_only

from zoo.interfaces.embedding import freeze_row
from zoo.plugin import Objective

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
_ADD = frozenset({Tensor.add, Tensor.__add__, torch.add})


class DeferredLogits(Tensor):
    """A tensor of logits that the first operation on it computes.

    .. math:: W h + b

    An objective that needs only a function of the logits can compute it from the parts. The sum
    with a bias is deferred too.

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
        cls,
        states: Tensor,
        weight: Tensor,
        *,
        bias: Tensor | None = None,
        padding: int | None = None,
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
            if func in _ADD and not kwargs and _is_bias(*args):
                logits, bias = args
                return cls(logits.states, logits.weight, bias=bias, padding=logits.padding)
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


def _is_bias(logits: Any, other: Any) -> bool:
    """Return whether a sum is that of logits without a bias and a bias [V]."""
    return (
        isinstance(logits, DeferredLogits)
        and isinstance(other, Tensor)
        and logits.bias is None
        and logits._computed is None
        and other.shape == logits.weight.shape[:1]
        and other.dtype == logits.weight.dtype
    )


def compute_dtype(states: Tensor) -> torch.dtype:
    """Return the dtype of a matrix product with the states, which autocast changes."""
    if torch.is_autocast_enabled(states.device.type):
        return torch.get_autocast_dtype(states.device.type)
    return states.dtype


@contextlib.contextmanager
def defer_logits() -> Iterator[None]:
    """Let output layers return deferred logits inside the block."""
    token = _DEFERRING.set(True)
    try:
        yield
    finally:
        _DEFERRING.reset(token)


def is_deferring() -> bool:
    """Whether output layers return deferred logits."""
    return _DEFERRING.get()


@singledispatch
def uses_deferred_logits(objective: Objective) -> bool:
    """Return whether an objective can compute the loss from the parts of `DeferredLogits`."""
    return False
