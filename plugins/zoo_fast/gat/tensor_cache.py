"""What was computed from one tensor, kept for the next call with the same tensor."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from torch import Tensor

T = TypeVar("T")
KEPT = 2
"""Number of results that are kept: a graph is used with its training and its validation nodes."""


class TensorCache(Generic[T]):
    """Keeps the last results of a function of a tensor, so that it is computed once for a graph.

    The tensor is identified by itself and its version, which changes with every operation in place.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[weakref.ref[Tensor], Hashable, T]] = []

    def get(self, tensor: Tensor, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result that was kept for the tensor and the key, or compute and keep it."""
        if tensor.is_inference():
            return compute()
        key = (key, tensor._version)
        for kept, kept_key, result in self._kept:
            if kept() is tensor and kept_key == key:
                return result
        alive = [kept for kept in self._kept if kept[0]() is not None and kept[0]() is not tensor]
        computed = compute()
        self._kept = [*alive[1 - KEPT :], (weakref.ref(tensor), key, computed)]
        return computed
