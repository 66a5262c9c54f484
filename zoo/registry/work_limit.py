"""A limit on the operations and the memory of building and running a model."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_leaves, tree_map_only

from zoo.errors import ZooError

MAX_ENTRIES = 10_000
Effect = Literal["new", "in place", "other"]
_CONSTANTS = (bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format)


class MetaCache:
    """The forms of the results of operations, by the operation and the forms of its arguments."""

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] = {}
        self._effects: dict[Any, Effect] = {}

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run an operation with an argument on the meta device, or create its former result.

        An operation in place that keeps the form of its tensor is skipped when it is repeated.
        Views always run, and so do operations without tensors as arguments, and those with
        arguments or results of other types than tensors, numbers and lists.
        """
        key = self._make_key(func, args, kwargs)
        if key is None:
            return func(*args, **kwargs)
        is_in_place = self._effects[func] == "in place"
        described = self._results.get(key)
        if described is not None:
            return args[0] if is_in_place else _create(described)
        form = _describe(args[0]) if is_in_place else None
        result = func(*args, **kwargs)
        if _is_plain(result) and form in (None, _describe(result)):
            if len(self._results) >= MAX_ENTRIES:
                self._results.clear()
            self._results[key] = _describe(result)
        return result

    def _make_key(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Hashable | None:
        """Return what the result depends on; None for an operation that has to run."""
        if func not in self._effects:
            self._effects[func] = _effect(func)
        if self._effects[func] == "other":
            return None
        try:
            default = torch.get_default_dtype()  # of a quotient of integers
            return (func, default, *_keys(args), *kwargs, *_keys(kwargs.values()))
        except TypeError:
            return None


@cache
def process_cache() -> MetaCache:
    """Return the cache of all builds and checks of this process."""
    return MetaCache()


def _effect(func: Any) -> Effect:
    """Return whether an operation computes new tensors from others, or modifies its first one."""
    arguments, returns = func._schema.arguments, func._schema.returns
    aliases = [value for value in (*arguments, *returns) if value.alias_info]
    if not aliases:
        return "new" if any("Tensor" in str(a.type) for a in arguments) else "other"
    modifies_first = len(aliases) == 2 and aliases[0] is arguments[0] and aliases[1] is returns[0]
    return "in place" if modifies_first and aliases[0].alias_info.is_write else "other"


def _keys(values: Any) -> Iterator[Hashable]:
    """Yield a key for each value; raise TypeError for one that cannot be compared."""
    for value in values:
        if type(value) in (Tensor, nn.Parameter) and not value.is_complex():
            yield value.shape, value.stride(), value.dtype, value.device
        elif isinstance(value, (list, tuple)):
            yield tuple(_keys(value))
        elif value is None or isinstance(value, _CONSTANTS):
            yield type(value), value  # 1 and 1.0 are equal, but give results of other dtypes
        else:
            raise TypeError


def _is_plain(result: Any) -> bool:
    """Return whether a result is a tensor on the meta device, or some of them."""
    if isinstance(result, (list, tuple)):
        return all(isinstance(item, Tensor) and _is_plain(item) for item in result)
    return type(result) is Tensor and result.is_meta and not result.is_complex()


def _describe(result: Any) -> Any:
    if isinstance(result, Tensor):
        return result.shape, result.stride(), result.dtype
    return type(result), [_describe(item) for item in result]


def _create(described: Any) -> Any:
    if len(described) == 2:
        kind, items = described
        return kind(_create(item) for item in items)
    shape, stride, dtype = described
    return torch.empty_strided(shape, stride, dtype=dtype, device="meta")


MAX_OPERATIONS = 60_000
"""Operations of one build, or of the examples of one check. A Llama of 126 layers needs 33,000,
20 rollouts of six glimpses need 51,000."""
MAX_BYTES = 256_000_000
"""Bytes of tensors outside of the meta device in one build or check."""


class WorkLimit(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Context manager that raises ZooError if the operations inside exceed a limit.

    Tensors on the meta device take no memory and are not counted. The size of any other result is
    computed on the meta device first, so that the error is raised before memory is allocated.

    Args:
        max_operations: maximum number of operations.
        max_bytes: maximum number of bytes of all results that are not on the meta device.
    """

    def __init__(self, *, max_operations: int = MAX_OPERATIONS, max_bytes: int = MAX_BYTES) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.max_operations = max_operations
        self.max_bytes = max_bytes
        self.operations = 0
        self.bytes = 0
        self._cache = process_cache()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Do not exclude the operations from compilation: that imports ``torch._dynamo``, which
        takes as long as the import of torch, and torch does not compile inside a mode."""
        return False

    def count(self, operations: int, num_bytes: int) -> None:
        """Count operations and their bytes; raise ZooError above a limit."""
        self.operations += operations
        if self.operations > self.max_operations:
            raise ZooError(f"needs more than {self.max_operations:,} operations")
        self.bytes += num_bytes
        if num_bytes and self.bytes > self.max_bytes:
            raise ZooError(
                f"needs {self.bytes / 1e9:,.1f} GB of memory, more than the limit of "
                f"{self.max_bytes / 1e9:,.1f} GB"
            )

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if _is_on_meta(args, kwargs):
            self.count(1, 0)
            return self._cache.run(func, args, kwargs)
        self.count(1, _predict_bytes(func, args, kwargs))
        return func(*args, **kwargs)


class Work:
    """The work between creation and `end`, counted again by `repeat`."""

    def __init__(self) -> None:
        modes = _get_current_dispatch_mode_stack()
        self._limits = [
            (mode, mode.operations, mode.bytes) for mode in modes if isinstance(mode, WorkLimit)
        ]

    def end(self) -> None:
        self._limits = [
            (limit, limit.operations - operations, limit.bytes - num_bytes)
            for limit, operations, num_bytes in self._limits
        ]

    def repeat(self) -> None:
        """Count the same work again, for a result that was copied instead of computed."""
        for limit, operations, num_bytes in self._limits:
            limit.count(operations, num_bytes)


def _is_on_meta(args: Any, kwargs: Mapping[str, Any]) -> bool:
    """Return whether the result of an operation is on the meta device."""
    if any(isinstance(leaf, Tensor) and leaf.is_meta for leaf in (*args, *kwargs.values())):
        return True
    if str(kwargs.get("device")) == "meta":
        return True
    return any(isinstance(leaf, Tensor) and leaf.is_meta for leaf in tree_leaves((args, kwargs)))


def _predict_bytes(func: Any, args: Any, kwargs: Mapping[str, Any]) -> int:
    """Return the size of the results of an operation, computed on the meta device."""
    if any(result.alias_info for result in func._schema.returns):
        return 0  # a view, or in place
    options: dict[str, Any]
    args, options = tree_map_only(Tensor, lambda tensor: tensor.to("meta"), (args, dict(kwargs)))
    if any(argument.name == "device" for argument in func._schema.arguments):
        options["device"] = torch.device("meta")
    try:
        results = func(*args, **options)
    except (RuntimeError, NotImplementedError):
        return 0  # an operation whose result depends on values; not larger than its arguments
    leaves = (leaf for leaf in tree_leaves(results) if isinstance(leaf, Tensor))
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves)
