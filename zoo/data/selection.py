"""Selects the rows that batches are made of, by their lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zoo.data.encoding import Skipped
from zoo.data.order import Indices
from zoo.data.packing import pack
from zoo.data.reader import ExampleReader
from zoo.data.source import BatchSource, BlockSource, ExampleSource, TableSource
from zoo.data.token_table import EncodedExamples
from zoo.errors import DataError, ZooError
from zoo.spec.training import Batching


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
