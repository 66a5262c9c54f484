"""Results of operations on the meta device, kept by the shapes of the arguments.

torch infers the result of most operations on meta tensors in Python, which takes up to a
millisecond. Layers and time steps repeat the same operations, so their results are only created.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn

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
