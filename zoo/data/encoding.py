"""Encoding of the texts and labels of a dataset before training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from zoo.data.collation import check_range
from zoo.data.order import Indices
from zoo.data.reader import ExampleReader, add_origin
from zoo.data.token_table import TokenTable
from zoo.errors import DataError
from zoo.interfaces import Array

Progress = Callable[[str, int, int], None]
"""Called with the name of a task, the number of completed examples and the number of all."""

BadData = Literal["fail", "skip"]
CHUNK = 1024
MAX_REASONS = 20


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
            raise error
        if index not in self.seen:
            self.seen.add(index)
            full = len(self.counts) >= MAX_REASONS and error.message not in self.counts
            reason = "other reasons" if full else error.message
            self.counts[reason] = self.counts.get(reason, 0) + 1


@dataclass(frozen=True)
class Chunk:
    """Encoded examples: their indices in the dataset, and the arrays of each key."""

    rows: list[int]
    arrays: dict[str, list[Array]]


def encode_chunks(
    reader: ExampleReader, skipped: Skipped, *, empty: bool, progress: Progress | None = None
) -> Iterator[Chunk]:
    """Yield the encoded examples in order, without those that are skipped.

    Args:
        empty: whether texts without tokens are valid.
    """
    count = len(reader.examples)
    for start in range(0, count, CHUNK):
        indices = range(start, min(start + CHUNK, count))
        yield _encode_chunk(reader, indices, skipped, empty=empty)
        if progress:
            progress("encoding", indices.stop, count)


def _encode_chunk(
    reader: ExampleReader, indices: Sequence[int], skipped: Skipped, *, empty: bool
) -> Chunk:
    try:
        examples = [reader.examples[index] for index in indices]
        columns = {
            key: item.encode_many([reader.value(key, example) for example in examples])
            for key, item in reader.preprocessors.items()
        }
        for key, arrays in columns.items():
            _check_column(reader, key, arrays, empty=empty)
        return Chunk(list(indices), {k: _add_tokens(reader, k, v) for k, v in columns.items()})
    except DataError:
        if len(indices) > 1:
            parts = [_encode_chunk(reader, [i], skipped, empty=empty) for i in indices]
            keys = reader.preprocessors
            return Chunk(
                [row for part in parts for row in part.rows],
                {key: [a for part in parts for a in part.arrays.get(key, [])] for key in keys},
            )
    try:
        with add_origin(reader.examples, indices[0]):
            (index,) = indices
            encoded = reader.encode(index)
            for key, array in encoded.items():
                _check_column(reader, key, [array], empty=empty)
        return Chunk([index], {k: _add_tokens(reader, k, [a]) for k, a in encoded.items()})
    except DataError as error:
        skipped.add(indices[0], error)
        return Chunk([], {})


def _check_column(reader: ExampleReader, key: str, arrays: Sequence[Array], *, empty: bool) -> None:
    """Raise DataError if an array is empty, has a wrong shape, or IDs out of range."""
    field = reader.schema.get(key, reader.outputs[key][key])
    rank = len(field.dims or ("B", "S")) - 1
    for array in arrays:
        if array.ndim != rank or array.dtype.kind not in "iu":
            found = f"{array.dtype} {list(array.shape)}"
            raise DataError(f"'{key}' is encoded as {found}, but expected {rank} dimensions of IDs")
        if not array.size and not empty:
            raise DataError(f"'{key}' is empty: it has no tokens")
    flat = np.concatenate([array.ravel() for array in arrays]) if arrays else np.empty(0)
    if isinstance(field.below, int) and flat.size:
        check_range(key, flat, field.below, field.minimum)


def _add_tokens(reader: ExampleReader, key: str, arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays with prefix and suffix; transforms get them without."""
    field = reader.schema[key]
    if reader.transforms(key) or not (field.prefix or field.suffix):
        return list(arrays)
    return [
        np.concatenate([field.prefix, array, field.suffix]) if array.size else array
        for array in arrays
    ]


@dataclass(frozen=True)
class EncodedExamples:
    """The encoded examples of a dataset.

    Attributes:
        tables: the token IDs by key.
        rows: the index in the dataset of each row of the tables.
    """

    tables: dict[str, TokenTable]
    rows: Indices


def encode_examples(
    reader: ExampleReader, skipped: Skipped, *, empty: bool, progress: Progress | None = None
) -> EncodedExamples:
    """Encode all examples in memory."""
    chunks = list(encode_chunks(reader, skipped, empty=empty, progress=progress))
    rows = np.array([row for chunk in chunks for row in chunk.rows], dtype=np.int64)
    tables = {
        key: TokenTable.of([array for chunk in chunks for array in chunk.arrays.get(key, [])])
        for key in reader.preprocessors
    }
    return EncodedExamples(tables, rows)
