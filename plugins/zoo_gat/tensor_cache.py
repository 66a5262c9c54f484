"""What was computed from one tensor, kept for the next call with the same tensor."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


class TensorCache(Generic[T]):
    """Keeps the result of a function of one tensor, so that it is computed once for a graph.

    The tensor is identified by itself and its version, which changes with every operation in place.
    Copies and pickles of a cache are empty.
    """

    def __init__(self) -> None:
        self._tensor: weakref.ref[Tensor] | None = None
        self._key: Hashable = None
        self._result: T | None = None

    def get(self, tensor: Tensor, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result that was kept for the tensor and the key, or compute and keep it."""
        if torch.compiler.is_compiling() or tensor.is_inference():
            return compute()
        key = (key, tensor._version)
        is_new = self._tensor is None or self._tensor() is not tensor or self._key != key
        if is_new or self._result is None:
            self._result = compute()
            self._tensor, self._key = weakref.ref(tensor), key
        return self._result

    def __deepcopy__(self, memo: object) -> TensorCache[T]:
        return TensorCache()

    def __reduce__(self) -> tuple[type[TensorCache[T]], tuple[()]]:
        return TensorCache, ()
