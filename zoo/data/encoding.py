"""Encoding of the texts and labels of a dataset before training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zoo.data.collation import check_range, require_values
from zoo.data.reader import ExampleReader, add_origin
from zoo.data.special_tokens import count_special_tokens
from zoo.errors import DataError
from zoo.interfaces import Array, TensorSchema

ProgressFunction = Callable[[str, int, int], None]
"""Called with the name of a task, the number of completed examples and the number of all."""

BadData = Literal["fail", "skip"]
CHUNK_EXAMPLES = 1024
CHUNK_CHARACTERS = 2**18
MAX_REASONS = 20

_Values = tuple[int, dict[str, Any]]
"""The index of an example, and the values of its fields."""


@dataclass
class Skipped:
    """Counts the examples that are left out, by reason.

    Args:
        bad_data: "fail" raises the error instead.
    """

    bad_data: BadData
    counts: dict[str, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def add(self, index: int, error: DataError) -> None:
        """Count an example once, or raise its error."""
        if self.bad_data == "fail":
            error.skippable = True
            raise error
        if index not in self.seen:
            self.seen.add(index)
            full = len(self.counts) >= MAX_REASONS and error.message not in self.counts
            reason = "other reasons" if full else error.message
            self.counts[reason] = self.counts.get(reason, 0) + 1


@dataclass(frozen=True)
class Chunk:
    """Encoded examples.

    Attributes:
        rows: their indices in the dataset.
        tokens: by key, the IDs of all examples, one after the other.
        lengths: by key, the number of IDs of each example.
        widths: by key with several texts, the number of IDs of each text of an example.
    """

    rows: NDArray[np.int64]
    tokens: dict[str, Array]
    lengths: dict[str, NDArray[np.int64]]
    widths: dict[str, NDArray[np.int64]] = field(default_factory=dict)


def encode_chunks(
    reader: ExampleReader,
    skipped: Skipped,
    *,
    empty: bool,
    progress: ProgressFunction | None = None,
) -> Iterator[Chunk]:
    """Yield the encoded examples in order, without those that are skipped.

    Args:
        empty: whether texts without tokens are valid.
    """
    count = len(reader.examples)
    pending: list[_Values] = []
    characters = 0
    for index in range(count):
        try:
            with add_origin(reader.examples, index):
                example = reader.examples[index]
                values = {key: reader.value(key, example) for key in reader.preprocessors}
        except DataError as error:
            skipped.add(index, error)
            continue
        pending.append((index, values))
        characters += sum(len(value) for value in values.values() if isinstance(value, str))
        if len(pending) == CHUNK_EXAMPLES or characters >= CHUNK_CHARACTERS:
            yield _to_chunk(reader, _encode(reader, pending, skipped, empty=empty))
            pending, characters = [], 0
            if progress:
                progress("encoding", index + 1, count)
    if pending:
        yield _to_chunk(reader, _encode(reader, pending, skipped, empty=empty))
    if progress:
        progress("encoding", count, count)


def _encode(
    reader: ExampleReader, pending: Sequence[_Values], skipped: Skipped, *, empty: bool
) -> list[tuple[int, dict[str, Array]]]:
    """Return the arrays of the examples; if one is not valid, encode them one by one."""
    try:
        with add_origin(reader.examples, pending[0][0]):
            columns = {
                key: list(item.encode_many([values[key] for _, values in pending]))
                for key, item in reader.preprocessors.items()
            }
            for key, arrays in columns.items():
                _check_column(key, reader.field(key), arrays, empty=empty)
            _check_sizes(reader, columns)
    except DataError as error:
        if len(pending) == 1:
            skipped.add(pending[0][0], error)
            return []
        parts = [_encode(reader, [one], skipped, empty=empty) for one in pending]
        return [encoded for part in parts for encoded in part]
    return [
        (index, {key: arrays[number] for key, arrays in columns.items()})
        for number, (index, _) in enumerate(pending)
    ]


def _check_column(key: str, schema: TensorSchema, arrays: Sequence[Array], *, empty: bool) -> None:
    """Raise DataError if an array is empty, has a wrong shape, or IDs out of range."""
    rank = len(schema.dims or ("B", "S")) - 1
    for array in arrays:
        if array.ndim != rank or array.dtype.kind not in "iu":
            found, expected = f"{array.dtype} {list(array.shape)}", f"integer {schema.format()}"
            raise DataError(f"'{key}' is encoded as {found}, but the model takes {expected}")
        if not empty:
            require_values(key, array, schema)
    flat = np.concatenate([array.ravel() for array in arrays])
    if isinstance(schema.below, int) and flat.size:
        check_range(key, flat, schema.below, schema.minimum)


def _check_sizes(reader: ExampleReader, columns: dict[str, list[Array]]) -> None:
    """Raise DataError if the length of a text or list is not that of its dimension, which may be
    shared with another key. Transforms are checked when their batch is made."""
    known: dict[str, tuple[str, NDArray[np.int64]]] = {}
    for key, arrays in columns.items():
        schema = reader.field(key)
        dims = (schema.dims or ())[1:]
        if not dims or reader.transforms(key):
            continue
        added = count_special_tokens(schema)
        for axis, dim in enumerate(dims):
            lengths = np.array([a.shape[axis] + added if a.size else 0 for a in arrays])
            if isinstance(dim, str):
                other, expected = known.setdefault(dim, (key, lengths))
            else:
                other, expected = "the model", np.where(lengths, dim, 0)
            wrong = np.flatnonzero(lengths != expected)
            if len(wrong):
                found, size = int(lengths[wrong[0]]), int(expected[wrong[0]])
                name = other if other == "the model" else f"'{other}'"
                raise DataError(f"'{key}' has {found} values, but expected {size}, as in {name}")


def _to_chunk(reader: ExampleReader, encoded: Sequence[tuple[int, dict[str, Array]]]) -> Chunk:
    """Return the completed arrays of encoded examples."""
    tokens, lengths, widths = {}, {}, {}
    for key in reader.preprocessors:
        schema = reader.field(key)
        arrays = reader.complete(key, [arrays[key] for _, arrays in encoded])
        lengths[key] = np.array([array.size for array in arrays], dtype=np.int64)
        if len(schema.dims or ()) == 3:
            widths[key] = np.array([array.shape[1] for array in arrays], dtype=np.int64)
        flat = np.concatenate([a.ravel() for a in arrays]) if len(arrays) else np.empty(0)
        tokens[key] = flat.astype(token_dtype(schema))
    rows = np.array([index for index, _ in encoded], dtype=np.int64)
    return Chunk(rows, tokens, lengths, widths)


def token_dtype(schema: TensorSchema) -> np.dtype[Any]:
    """Return the smallest dtype of the IDs of a key."""
    if isinstance(schema.below, int) and schema.minimum is not None and schema.minimum >= 0:
        return np.min_scalar_type(schema.below - 1)
    return np.dtype(np.int64)
