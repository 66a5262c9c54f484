"""Declaration of a model's batch, and the check of a batch against it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from zoo.errors import ZooError, suggest

SEGMENTS = "segments"
"""The key of the number of the example that each token belongs to, in rows of several examples."""

Sizes = dict[str, tuple[int, str]]
"""The size of each named dimension, and the key that it comes from."""


class TensorSchema(NamedTuple):
    """Declares one tensor of a batch.

    Attributes:
        dims: the name ("B", "S") or the size of each dimension; dimensions of one name have the
            same size in a batch. None if the shape is not known.
        dtype: "integer", "float", "bool", or "number" for any of them.
        below: upper limit of IDs, or the name of a dimension whose size it is.
        minimum: smallest valid ID; None if IDs of masked positions may be negative.
        channels: if set, the tensor may have one more dimension, with IDs below these limits.
        optional: whether the key may be missing.
        pad: the value that fills shorter examples of a batch.
        prefix, suffix: token IDs that are added before and after the tokens of a text, such as bos
            and eos.
        empty: whether an example may have no values, such as a graph without edges.
        min_length: smallest length of an example, such as the samples of one frame of a waveform.
        same_size: whether the examples of a batch must have one size, such as images, whose padding
            is not masked; others are padded.
    """

    dims: tuple[str | int, ...] | None = None
    dtype: Literal["integer", "float", "bool", "number"] = "number"
    below: int | str | None = None
    minimum: int | None = 0
    channels: tuple[int | None, ...] | None = None
    optional: bool = False
    pad: int | float = 0
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    empty: bool = False
    min_length: int = 0
    same_size: bool = False

    def with_dims(self, *dims: str | int) -> TensorSchema:
        """Return the schema of IDs of the same range in a tensor with other dimensions."""
        return self._replace(dims=dims, channels=None, same_size=False)

    def rename(self, old: str, new: str) -> TensorSchema:
        """Return the schema with another name of a dimension."""
        dims = self.dims and tuple(new if dim == old else dim for dim in self.dims)
        return self._replace(dims=dims)

    def format(self, sizes: Sizes | None = None) -> str:
        """Return the shape, for example "[B, 3]", with the sizes that are known from other keys."""
        if self.dims is None:
            return "[B, ...]"
        text = f"[{', '.join(map(str, self.dims))}]"
        known = [
            f"{dim} = {sizes[dim][0]} as in '{sizes[dim][1]}'"
            for dim in self.dims
            if sizes and isinstance(dim, str) and dim in sizes
        ]
        return f"{text} with {', '.join(known)}" if known else text


BatchSchema = Mapping[str, TensorSchema]


def add_zeros(
    schema: BatchSchema, batch: Mapping[str, Tensor], keys: Collection[str]
) -> dict[str, Tensor]:
    """Return a batch with zeros for these keys; dimensions that other keys do not have are 1."""
    sizes: dict[str | int, int] = {}
    for key, tensor in batch.items():
        sizes.update(zip(schema[key].dims or (), tensor.shape, strict=False))
    device = next(iter(batch.values())).device
    completed = dict(batch)
    for key in keys:
        dims = schema[key].dims or ("B",)
        shape = [dim if isinstance(dim, int) else sizes.get(dim, 1) for dim in dims]
        dtype = torch.long if schema[key].dtype == "integer" else None
        completed[key] = torch.zeros(shape, dtype=dtype, device=device)
    return completed


def check_batch(
    schema: BatchSchema, batch: Any, model: str, hint: Callable[[str], str] = lambda key: ""
) -> None:
    """Raise ZooError if a batch does not have the declared tensors.

    Values are read on the CPU only, because reading them would synchronise an accelerator.

    Args:
        hint: returns what to do without a key, for the message.
    """
    if not isinstance(batch, Mapping):
        found = (
            f"a tensor {list(batch.shape)}" if isinstance(batch, Tensor) else type(batch).__name__
        )
        raise ZooError(
            f"{model} takes a batch, a mapping of names to tensors ({_format(schema)}), but got "
            f"{found}"
        )
    sizes: Sizes = {}
    for key, field in schema.items():
        tensor = batch.get(key)
        if isinstance(tensor, Tensor):
            problem = _check_tensor(key, tensor, field, sizes)
            if problem:
                raise ZooError(f"'{key}' in the batch of {model} {problem}")
        elif key in batch or not field.optional:
            found = f"is {type(tensor).__name__}, not a tensor" if key in batch else "is missing"
            names = ", ".join(f"'{name}'" for name in batch) or "nothing"
            raise ZooError(
                f"'{key}' in the batch of {model} {found}; expected a tensor "
                f"{field.format(sizes)}, and the batch has {names}{hint(key)}"
            )
    if len(batch) > sum(key in batch for key in schema):
        unknown = next(key for key in batch if key not in schema)
        shape = getattr(batch[unknown], "shape", ())
        raise ZooError(
            f"'{unknown}' {list(shape)} in the batch of {model} is not one of its keys: "
            f"{_format(schema)}{suggest(str(unknown), schema)}"
        )


def _format(schema: BatchSchema) -> str:
    return ", ".join(
        f"'{key}' {field.format()}{' optional' if field.optional else ''}"
        for key, field in schema.items()
    )


def _check_tensor(key: str, tensor: Tensor, field: TensorSchema, sizes: Sizes) -> str | None:
    """Return the problem of a tensor, or None; add its dimensions to the sizes."""
    shape, dims = tensor.shape, field.dims
    if dims is not None:
        extra = len(shape) == len(dims) + 1 and field.channels is not None
        valid = extra or len(shape) == len(dims)
        if extra:
            valid = shape[-1] == len(field.channels or ())
        for size, dim in zip(shape, dims, strict=False):
            expected = dim if isinstance(dim, int) else sizes.get(dim, (size,))[0]
            valid = valid and size == expected
        if not valid:
            return f"has shape {list(shape)}, but expected {field.format(sizes)}"
        if 0 in shape[1:] and not field.empty:
            return f"has shape {list(shape)}, so its examples are empty"
        for size, dim in zip(shape, dims, strict=False):
            if isinstance(dim, str):
                sizes.setdefault(dim, (size, key))
    elif len(shape) == 0 or shape[0] != sizes.setdefault("B", (shape[0], key))[0]:
        return f"has shape {list(shape)}, but expected {TensorSchema(('B', '...')).format(sizes)}"
    kind = field.dtype
    is_bool, is_float = tensor.dtype is torch.bool, tensor.dtype.is_floating_point
    wrong_kind = kind != "number" and (is_bool, is_float) != (kind == "bool", kind == "float")
    if wrong_kind or tensor.is_complex():
        return f"has dtype {tensor.dtype} and shape {list(shape)}, but expected {kind} values"
    if kind == "integer" and tensor.dtype not in (torch.int64, torch.int32):
        return f"has dtype {tensor.dtype}, but expected torch.int64 or torch.int32"
    if tensor.layout != torch.strided:
        return f"has layout {tensor.layout}, but expected a dense tensor"
    if field.below is not None and tensor.device.type == "cpu" and type(tensor) is Tensor:
        below = field.below if isinstance(field.below, int) else sizes[field.below][0]
        if dims is None or len(shape) == len(dims):
            return _check_range(tensor, below, field.minimum)
        for index, num_ids in enumerate(field.channels or ()):
            problem = num_ids and _check_range(tensor[..., index], num_ids, field.minimum)
            if problem:
                return problem
    return None


def _check_range(ids: Tensor, below: int, minimum: int | None) -> str | None:
    if not ids.numel():
        return None
    low, high = (int(value) for value in ids.aminmax())
    if high < below and (minimum is None or low >= minimum):
        return None
    wrong = high if high >= below else low
    return (
        f"contains {wrong}, but expected IDs from {minimum or 0} to {below - 1} (shape "
        f"{list(ids.shape)})"
    )
