"""The memory of the tensors that operations create, while they are alive."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from zoo.errors import ZooError

BLOCK = 512
"""The CUDA caching allocator rounds each allocation up to a multiple of this many bytes."""
MAX_OPERATIONS = 500_000
"""Operations of one training step; more take minutes."""

_SCALAR = torch.ops.aten._local_scalar_dense.default
_NONZERO = torch.ops.aten.nonzero.default
_INDEX = torch.ops.aten.index.Tensor
_CONVERT = torch.ops.aten._to_copy.default


class MemoryTracker(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Context manager that counts the bytes of live storages by category.

    A storage is counted once, from the first operation that returns a tensor of it until it is
    freed. Weights that are converted to another dtype have the category "copies". Use it inside a
    `FakeTensorMode`, so that no memory is allocated. Fake tensors have no values: an integer
    that is read is 0, another number 1.0, and a mask selects no position, so that checks of values
    pass.

    Attributes:
        category: the category of storages that are created next.
        live: bytes of the live storages of each category.
        peak: the largest sum of `live`, since the last `reset_peak`.
        at_peak: `live` at the time of the peak.
        transient_peak: the largest sum of `live` without the categories in `persistent`.
        operations: number of operations.
    """

    def __init__(self, *, persistent: Iterable[str] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.persistent = frozenset(persistent)
        self.category = "activations"
        self.live: Counter[str] = Counter()
        self.peak = self.transient_peak = self.operations = 0
        self.at_peak: Mapping[str, int] = {}
        self._storages: dict[int, tuple[int, str]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is _SCALAR:
            return _default_value(args[0].dtype)
        if func is _NONZERO:
            return args[0].new_empty((0, args[0].dim()), dtype=torch.long)
        self.operations += 1
        if self.operations > MAX_OPERATIONS:
            raise ZooError(f"a training step needs more than {MAX_OPERATIONS:,} operations")
        if func is _INDEX:
            args = (args[0], _without_masks(args[1]))
        results = func(*args, **(kwargs or {}))
        is_copy = func is _CONVERT and self._category_of(args[0]) == "weights"
        for leaf in tree_leaves(results):
            if isinstance(leaf, Tensor):
                self._add(leaf, "copies" if is_copy else self.category)
        return results

    def assign(self, tensors: Iterable[Tensor], category: str) -> None:
        """Set the category of the storages of tensors, and track those that are not tracked."""
        for tensor in tensors:
            self._add(tensor, category)
            key = tensor.untyped_storage()._cdata
            size, old = self._storages[key]
            self.live[old] -= size
            self.live[category] += size
            self._storages[key] = size, category

    def reset_peak(self) -> None:
        """Start a new measurement of the peaks."""
        self.peak = self.transient_peak = 0
        self._update_peak()

    def _category_of(self, tensor: Tensor) -> str | None:
        return self._storages.get(tensor.untyped_storage()._cdata, (0, None))[1]

    def _add(self, tensor: Tensor, category: str) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._storages:
            return
        size = -(-storage.nbytes() // BLOCK) * BLOCK
        self._storages[key] = size, category
        self.live[category] += size
        weakref.finalize(storage, self._remove, key).atexit = False
        self._update_peak()

    def _remove(self, key: int) -> None:
        size, category = self._storages.pop(key)
        self.live[category] -= size

    def _update_peak(self) -> None:
        total = sum(self.live.values())
        if total > self.peak:
            self.peak, self.at_peak = total, dict(self.live)
        transient = total - sum(self.live[name] for name in self.persistent)
        self.transient_peak = max(self.transient_peak, transient)


def _without_masks(indices: Iterable[Tensor | None]) -> list[Tensor | None]:
    """Replace each mask by the indices of no position."""
    replaced: list[Tensor | None] = []
    for index in indices:
        if index is not None and index.dtype is torch.bool:
            replaced += [index.new_empty(0, dtype=torch.long) for _ in range(index.dim())]
        else:
            replaced.append(index)
    return replaced


def _default_value(dtype: torch.dtype) -> bool | int | float:
    """Return 0, or 1.0 for floating-point numbers, which optimisers divide by."""
    if dtype is torch.bool:
        return False
    return 1.0 if dtype.is_floating_point else 0
