"""Selects the rows that batches are made of, by their lengths."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zoo.data.collation import ExampleArrays
from zoo.data.encoding import Skipped
from zoo.data.order import Indices, Lengths
from zoo.data.reader import ExampleReader
from zoo.data.source import BatchSource, BlockSource, Collated, ExampleSource, TableSource
from zoo.data.token_table import EncodedExamples
from zoo.errors import DataError, ZooError
from zoo.interfaces.batch_schema import SEGMENTS
from zoo.spec.training import Batching


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


def table_source(
    reader: ExampleReader, encoded: EncodedExamples, batching: Batching, skipped: Skipped
) -> BatchSource:
    """Return the source of encoded examples, or of blocks of their tokens."""
    if batching.block is not None:
        (key, *others) = encoded.tables
        if others or reader.transforms(key) or encoded.tables[key].widths is not None:
            names = ", ".join(f"'{name}'" for name in encoded.tables)
            raise ZooError(
                "batch.block needs one text without random masks or splits, but the data has "
                f"{names}"
            )
        return BlockSource(reader, encoded, key, batching.block)
    source = TableSource(reader, encoded, np.arange(len(encoded.rows)))
    if source.lengths is None:
        _forbid(batching, "tokens", "drop_long", "pack")
        return source
    keep = _select(reader, batching, skipped, source.lengths, encoded.rows)
    source = source if keep is None else TableSource(reader, encoded, keep)
    return source if batching.pack is None or reader.evaluation else pack(source, batching.pack)


def example_source(reader: ExampleReader, batching: Batching, skipped: Skipped) -> BatchSource:
    """Return the source of examples that are read when a batch is made."""
    sizes = reader.examples.sizes()
    _forbid(batching, "block", "pack")
    if sizes is None:
        _forbid(batching, "tokens", "drop_long")
    rows = np.arange(len(reader.examples))
    if sizes is None:
        return ExampleSource(reader, rows, None)
    lengths = np.asarray(sizes, dtype=np.int64)
    keep = _select(reader, batching, skipped, lengths, rows)
    if keep is None:
        return ExampleSource(reader, rows, lengths)
    return ExampleSource(reader, rows[keep], lengths[keep])


def _forbid(batching: Batching, *options: str) -> None:
    """Raise ZooError if one of the options, which need the lengths of the rows, is set."""
    for option in options:
        if getattr(batching, option) is not None:
            raise ZooError(
                f"batch.{option} needs the number of tokens of each example, which is not known "
                "for this dataset; use batch.items without it"
            )


def _select(
    reader: ExampleReader,
    batching: Batching,
    skipped: Skipped,
    lengths: NDArray[Any],
    rows: Indices,
) -> Indices | None:
    """Return the rows without those that ``drop_long`` leaves out, or None for all rows.

    Raises:
        DataError: if a row is longer than a batch, or than a row of several examples. Evaluation
            uses all rows.
    """
    if reader.evaluation or not len(lengths):
        return None
    keep = None
    if batching.drop_long is not None and int(lengths.max()) > batching.drop_long:
        keep = np.flatnonzero(lengths <= batching.drop_long)
        skipped.counts[f"more than {batching.drop_long} tokens"] = len(lengths) - len(keep)
        lengths, rows = lengths[keep], rows[keep]
    for option, what in (("tokens", "batch"), ("pack", "row")):
        limit = getattr(batching, option)
        if limit is not None and int(lengths.max(initial=0)) > limit:
            row = int(lengths.argmax())
            raise DataError(
                f"the example has {int(lengths[row]):,} tokens, but a {what} has at most "
                f"{limit:,}; increase batch.{option} or set batch.drop_long",
                reader.examples.origin(int(rows[row])),
            )
    return keep
