"""Results of operations on the meta device, kept by the shapes of the arguments.

torch infers the result of most operations on meta tensors in Python, which takes up to a
millisecond. Layers and time steps repeat the same operations, so their results are only created.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

MAX_ENTRIES = 10_000
_CONSTANTS = (bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format)


class MetaCache:
    """The results of the operations of one build or check."""

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] = {}
        self._computes_new: dict[Any, bool] = {}

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run an operation with an argument on the meta device, or create its former result.

        Operations that return or modify an argument always run, and so do those without tensors as
        arguments, and those with arguments or results of other types than tensors, numbers and
        lists.
        """
        key = self._make_key(func, args, kwargs)
        if key is None:
            return func(*args, **kwargs)
        if key in self._results:
            return _create(self._results[key])
        result = func(*args, **kwargs)
        if _is_plain(result):
            if len(self._results) >= MAX_ENTRIES:
                self._results.clear()
            self._results[key] = _describe(result)
        return result

    def _make_key(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Hashable | None:
        """Return what the result depends on; None for an operation that has to run."""
        if func not in self._computes_new:
            self._computes_new[func] = _computes_new_tensors(func)
        if not self._computes_new[func]:
            return None
        try:
            return (func, *_keys(args), *kwargs, *_keys(kwargs.values()))
        except TypeError:
            return None


def _computes_new_tensors(func: Any) -> bool:
    """Return whether an operation has tensors as arguments, and does not return or modify them."""
    schema = func._schema
    has_tensors = any("Tensor" in str(argument.type) for argument in schema.arguments)
    return has_tensors and not any(v.alias_info for v in (*schema.arguments, *schema.returns))


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
