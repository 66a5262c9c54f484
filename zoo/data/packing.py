"""Rows of several examples, one after the other, so that little of a batch is padding."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from zoo.data.collation import ExampleArrays
from zoo.data.order import Indices, Lengths
from zoo.data.source import BatchSource, Collated, TableSource
from zoo.errors import DataError, ZooError
from zoo.interfaces.batch_schema import SEGMENTS


def pack_rows(lengths: Lengths, size: int) -> list[Indices]:
    """Divide examples into rows of at most `size` tokens: the longest first, each into the row that
    it fills best. Rows are in the order of their first examples.

    Args:
        lengths: the number of tokens of each example, at most `size`.
    """
    rows: list[list[int]] = []
    spaces: list[int] = []  # sorted: the different numbers of tokens that fit into a row
    by_space: dict[int, list[list[int]]] = {}
    for index in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[index])
        best = bisect_left(spaces, length)
        if best < len(spaces):
            space = spaces[best]
            row = by_space[space].pop()
            if not by_space[space]:
                del by_space[space], spaces[best]
        else:
            space, row = size, []
            rows.append(row)
        row.append(index)
        if space > length:
            if space - length not in by_space:
                insort(spaces, space - length)
            by_space.setdefault(space - length, []).append(row)
    return [np.array(row) for row in sorted(sorted(row) for row in rows)]


class PackedSource(BatchSource):
    """Rows of several encoded examples, with the number of the example of each token.

    Args:
        examples: the examples, whose keys have one dimension of tokens.
        size: maximum number of tokens of a row.
    """

    def __init__(self, examples: TableSource, size: int) -> None:
        self.reader, self.examples = examples.reader, examples
        lengths = examples.lengths
        assert lengths is not None
        assert examples.totals is not None
        self.rows = pack_rows(lengths, size)
        self.lengths = np.array([lengths[row].sum() for row in self.rows], dtype=np.int32)
        self.totals = np.array([examples.totals[row].sum() for row in self.rows], dtype=np.int32)

    def count(self, epoch: int) -> int:
        return len(self.rows)

    def collate(self, rows: Indices, epoch: int) -> Collated:
        packed, used, errors = [], [], []
        for row in rows:
            parts = []
            for example in self.rows[row]:
                index = self.examples.index(example)
                try:
                    parts.append(self.examples.example(example, epoch))
                    used.append(index)
                except DataError as error:
                    errors.append((index, error))
            if parts:
                packed.append(_join(parts))
        return Collated(self.stack(packed) if packed else None, used, errors)

    def example(self, row: int, epoch: int) -> ExampleArrays:
        return _join([self.examples.example(index, epoch) for index in self.rows[row]])


def _join(examples: list[ExampleArrays]) -> ExampleArrays:
    """Return examples as one, with segments from 1 on; 0 is padding."""
    joined = {key: np.concatenate([each[key] for each in examples]) for key in examples[0]}
    sizes = [len(next(iter(each.values()))) for each in examples]
    return {**joined, SEGMENTS: np.repeat(np.arange(1, len(examples) + 1), sizes)}


def pack(source: TableSource, size: int) -> PackedSource:
    """Return the packed rows of a source.

    Raises:
        ZooError: if the batch of the model has no segments, or a key has other dimensions.
    """
    schema = source.reader.schema
    if SEGMENTS not in schema:
        raise ZooError(f"batch.pack needs a model whose batch has '{SEGMENTS}'")
    expected = schema[SEGMENTS]
    for key in sorted(key for made in source.reader.outputs.values() for key in made):
        if key in schema and schema[key].dims != expected.dims:
            raise ZooError(
                f"batch.pack needs keys {expected.format()}, but '{key}' is {schema[key].format()}"
            )
    return PackedSource(source, size)
