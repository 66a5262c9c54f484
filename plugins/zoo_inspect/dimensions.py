"""Which dimensions of a batch the axes of recorded attention weights depend on.

Lengths do not tell: a source and an output can have the same one. So the model runs again for each
named dimension of its batch schema, with another size of it: an axis depends on the dimension if
its length has changed. Columns of a fixed number, such as those of a memory network, can hold the
positions of a dimension first, and be empty after them. Notation: B batch, H heads, T rows, S
columns, E edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from zoo.interfaces import BatchSchema

Log = Mapping[str, Sequence[Tensor]]
"""The weights of each call of each module, [B, H, T, S] or [B, H, E]."""
Dims = frozenset[str]
_BATCH = "B"


@dataclass(frozen=True)
class Dependence:
    """The names of the dimensions on which the weights of a module depend.

    Args:
        calls: those on which the number of calls depends.
        sizes: those on which the size of each dimension of a call after the heads depends.
        filled: those whose positions are the first columns, if the number of columns is fixed.
    """

    calls: Dims
    sizes: tuple[Dims, ...]
    filled: Dims = frozenset()


def find_dependence(
    log: Log,
    run: Callable[[Mapping[str, Tensor]], Log],
    schema: BatchSchema,
    batch: Mapping[str, Tensor],
) -> dict[str, Dependence]:
    """Return what the weights of each module depend on.

    Args:
        log: the recorded weights of the batch.
        run: runs the model on another batch and returns the recorded weights.
    """
    before = _measure(log)
    filled: dict[str, set[str]] = {path: set() for path in before}
    found: dict[str, list[set[str]]] = {
        path: [set() for _ in sizes] for path, sizes in before.items()
    }
    for dim, resized in _resized_batches(schema, batch):
        try:
            others = run(resized)
        except Exception:  # a model need not take the other size
            continue
        after = _measure(others)
        counts = [_size(schema, each, dim) for each in (batch, resized)]
        for path, sizes in before.items():
            for names, size, other in zip(found[path], sizes, after.get(path, ()), strict=False):
                if size != other:
                    names.add(dim)
            if sizes == after.get(path) and _are_filled(log[path], others[path], counts):
                filled[path].add(dim)
    return {
        path: Dependence(frozenset(calls), tuple(map(frozenset, sizes)), frozenset(filled[path]))
        for path, (calls, *sizes) in found.items()
    }


def _are_filled(first: Sequence[Tensor], second: Sequence[Tensor], counts: Sequence[int]) -> bool:
    """Return whether the columns of the calls of two passes hold `counts` positions, and are empty
    after them: the empty ones have one weight in each row, which the last position does not have.
    """
    S = first[0].shape[-1]
    if max(counts) > S or any(c.dim() != 4 or c.shape[3] != S for c in (*first, *second)):
        return False
    pairs = zip((first, second), counts, strict=True)
    partial = [(torch.cat([*calls], dim=2), count) for calls, count in pairs if count < S]
    return bool(partial) and all(
        torch.allclose(weights[..., count:], weights[..., -1:], rtol=1e-6, atol=0)
        and not torch.allclose(weights[..., count - 1], weights[..., -1], rtol=1e-6, atol=0)
        for weights, count in partial
    )


def _measure(log: Log) -> dict[str, tuple[int, ...]]:
    """Return the number of calls, and the largest size of each dimension after the heads."""
    return {
        path: (len(calls), *(max(c.shape[i] for c in calls) for i in range(2, calls[0].dim())))
        for path, calls in log.items()
        if calls
    }


def _resized_batches(
    schema: BatchSchema, batch: Mapping[str, Tensor]
) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Yield each named dimension, and the batch with another size of it."""
    known = {key: schema[key].dims or () for key in batch if key in schema}
    for dim in dict.fromkeys(d for dims in known.values() for d in dims if isinstance(d, str)):
        if dim == _BATCH:
            continue
        (key, axis), *_ = ((k, d.index(dim)) for k, d in known.items() if dim in d)
        size = batch[key].shape[axis]
        other = size // 2 if size > 3 and size // 2 >= schema[key].min_length else 2 * size
        resized = dict(batch)
        for name, dims in known.items():
            if dim in dims:
                resized[name] = _resize(resized[name], dims.index(dim), other)
            if schema[name].below == dim:  # indices into the dimension
                resized[name] = resized[name].clamp(max=other - 1)
        yield dim, resized


def _size(schema: BatchSchema, batch: Mapping[str, Tensor], dim: str) -> int:
    """Return the size of a named dimension."""
    known = ((tensor, schema[key].dims or ()) for key, tensor in batch.items() if key in schema)
    return next(tensor.shape[dims.index(dim)] for tensor, dims in known if dim in dims)


def _resize(tensor: Tensor, axis: int, size: int) -> Tensor:
    """Return the tensor cut to a size, or with its last element repeated."""
    index = torch.arange(size, device=tensor.device).clamp(max=tensor.shape[axis] - 1)
    return tensor.index_select(axis, index)
