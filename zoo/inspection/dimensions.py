"""Which dimensions of a batch the axes of recorded attention weights depend on.

Lengths do not tell: a source and an output can have the same one. So the model runs again for each
named dimension of its batch schema, with another size of it: an axis depends on the dimension if
its length has changed. Notation: B batch, H heads, T rows, S columns, E edges.
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
    """The names of the dimensions on which the number of calls, and the size of each dimension of
    the weights of a call after the heads, depend."""

    calls: Dims
    sizes: tuple[Dims, ...]


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
    found: dict[str, list[set[str]]] = {
        path: [set() for _ in sizes] for path, sizes in before.items()
    }
    for dim, resized in _resized_batches(schema, batch):
        try:
            after = _measure(run(resized))
        except Exception:  # a model need not take the other size
            continue
        for path, sizes in before.items():
            for names, size, other in zip(found[path], sizes, after.get(path, ()), strict=False):
                if size != other:
                    names.add(dim)
    return {
        path: Dependence(frozenset(calls), tuple(map(frozenset, sizes)))
        for path, (calls, *sizes) in found.items()
    }


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


def _resize(tensor: Tensor, axis: int, size: int) -> Tensor:
    """Return the tensor cut to a size, or with its last element repeated."""
    index = torch.arange(size, device=tensor.device).clamp(max=tensor.shape[axis] - 1)
    return tensor.index_select(axis, index)
