"""Sources of batches: rows with lengths, and the batch of some rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from zoo.data.collation import ExampleArrays, collate, collate_columns
from zoo.data.order import Indices, block_layout
from zoo.data.padding import MASK, Padded, length_mask, mask_dim, pad_ranges
from zoo.data.reader import ExampleReader
from zoo.data.special_tokens import count_special_tokens
from zoo.data.token_table import EncodedExamples, TokenTable
from zoo.errors import DataError, ZooError
from zoo.interfaces import Array, Arrays, TensorSchema


class TokenStream:
    """The tokens of all rows of a table, one row after the other.

    If texts start with the token that ends them, as in GPT-2, it is between two texts once: the
    second one would be a target that is certain.

    Args:
        field: the start and end tokens of a text.
    """

    def __init__(self, table: TokenTable, field: TensorSchema) -> None:
        self.table = table
        size = len(field.prefix)
        self.shared = size if field.prefix == field.suffix[len(field.suffix) - size :] else 0

    def __len__(self) -> int:
        texts = len(self.table.offsets) - 1
        return len(self.table.tokens) - self.shared * max(texts - 1, 0)

    @cached_property
    def _starts(self) -> Indices:
        """The position of each text and the length of the stream [rows + 1]."""
        if not self.shared:
            return self.table.offsets
        texts_before = np.arange(len(self.table.offsets)) - 1
        starts: Indices = self.table.offsets - self.shared * texts_before.clip(min=0)
        return starts

    def texts(self, positions: Indices) -> NDArray[np.int64]:
        """Return the row of the text at each position."""
        return np.searchsorted(self._starts, positions, side="right") - 1

    def __getitem__(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Return the tokens at some positions."""
        if self.shared:
            positions = positions + self.shared * self.texts(positions)
        tokens: NDArray[Any] = self.table.tokens[positions]
        return tokens

    def pad_blocks(self, starts: Indices, size: int, pad: float) -> Padded:
        """Return blocks of consecutive tokens, padded."""
        return pad_ranges(self, starts, np.minimum(starts + size, len(self)), pad)


class Collated(NamedTuple):
    """A batch, the indices of its examples, and the examples that could not be used."""

    batch: dict[str, Tensor] | None
    examples: list[int]
    errors: list[tuple[int, DataError]]


class BatchSource(ABC):
    """Rows that are divided into batches; a row is an example or a block of tokens.

    Attributes:
        reader: reads the examples, and transforms and checks their arrays.
        lengths: the number of tokens of each row, of the key with the most; None if not known.
        totals: the number of tokens of each row, of all keys together; None if not known.
    """

    reader: ExampleReader
    lengths: NDArray[Any] | None = None
    totals: NDArray[Any] | None = None

    @abstractmethod
    def count(self, epoch: int) -> int:
        """Return the number of rows of an epoch."""

    def tokens(self, rows: Indices) -> int:
        """Return the number of tokens of some rows, or the number of rows if it is not known."""
        return len(rows) if self.totals is None else int(self.totals[rows].sum())

    @property
    def counts_tokens(self) -> bool:
        """Whether the number of tokens is known."""
        return self.totals is not None

    @abstractmethod
    def collate(self, rows: Indices, epoch: int) -> Collated:
        """Return the batch of some rows."""

    @abstractmethod
    def example(self, row: int, epoch: int) -> ExampleArrays:
        """Return the arrays of one row, without padding; raise DataError if it cannot be used."""

    def stack(self, examples: Sequence[ExampleArrays]) -> dict[str, Tensor]:
        """Return the batch of arrays of `example`, the same as that of `collate`."""
        return collate(self.reader.schema, examples)


class TableSource(BatchSource):
    """Rows of encoded examples.

    Args:
        encoded: the encoded examples.
        rows: the rows of the tables to use.
    """

    def __init__(self, reader: ExampleReader, encoded: EncodedExamples, rows: Indices) -> None:
        self.reader, self.encoded, self.rows = reader, encoded, rows
        if all(table.widths is None for table in encoded.tables.values()):
            lengths = [row_lengths(reader, encoded, key)[rows] for key in encoded.tables]
            self.lengths = np.max(lengths, axis=0).astype(np.int32)
            self.totals = np.sum(lengths, axis=0).astype(np.int32)
        self.transformed = any(reader.transforms(key) for key in encoded.tables)

    def count(self, epoch: int) -> int:
        return len(self.rows)

    def collate(self, rows: Indices, epoch: int) -> Collated:
        table_rows = self.rows[rows]
        indices = self.encoded.rows[table_rows].tolist()
        if self.transformed:
            encoded = [self._encoded(row) for row in table_rows]
            return collate_examples(self.reader, indices, encoded, epoch)
        return Collated(self._pad(table_rows), indices, [])

    def index(self, row: int) -> int:
        """Return the index in the dataset of the example of a row."""
        return int(self.encoded.rows[self.rows[row]])

    def example(self, row: int, epoch: int) -> ExampleArrays:
        return self.reader.finish(self.index(row), self._encoded(self.rows[row]), epoch)

    def _encoded(self, row: int) -> dict[str, Array]:
        encoded = {}
        for key, table in self.encoded.tables.items():
            is_item = len(self.reader.schema[key].dims or ("B", "S")) == 1
            encoded[key] = table.row(row).reshape(()) if is_item else table.row(row)
        return encoded

    def _pad(self, rows: Indices) -> dict[str, Tensor]:
        schema, batch = self.reader.schema, {}
        lengths = {}
        for key, table in self.encoded.tables.items():
            if key in schema:
                ids, lengths[key] = table.pad(rows, schema[key].pad)
                is_item = len(schema[key].dims or ("B", "S")) == 1
                batch[key] = torch.from_numpy(ids[:, 0] if is_item else ids)
        dim = mask_dim(schema)
        if dim is not None:
            for key, field in schema.items():
                if key in lengths and field.dims and dim in field.dims:
                    mask = length_mask(lengths[key], batch[key].shape[1])
                    batch[MASK] = torch.from_numpy(mask)
        return batch


def row_lengths(reader: ExampleReader, encoded: EncodedExamples, key: str) -> NDArray[np.int64]:
    """Return the number of tokens of each row, with start and end tokens."""
    lengths = encoded.tables[key].lengths()
    if reader.transforms(key):
        lengths = reader.preprocessors[key].lengths(lengths)
        lengths = lengths + count_special_tokens(reader.schema[key])
    return lengths


class BlockSource(BatchSource):
    """Blocks of the tokens of all texts, one text after the other, for language models.

    Args:
        key: the key of the texts.
        block: number of predicted tokens of a block.
    """

    def __init__(
        self, reader: ExampleReader, encoded: EncodedExamples, key: str, block: int
    ) -> None:
        self.reader, self.encoded, self.key, self.block = reader, encoded, key, block
        self.stream = TokenStream(encoded.tables[key], reader.schema[key])

    def _layout(self, epoch: int) -> tuple[int, int]:
        return block_layout(
            len(self.stream),
            self.block,
            seed=self.reader.seed,
            epoch=epoch,
            evaluation=self.reader.evaluation,
        )

    def count(self, epoch: int) -> int:
        return self._layout(epoch)[1]

    @property
    def counts_tokens(self) -> bool:
        return True

    def tokens(self, rows: Indices) -> int:
        return len(rows) * self.block

    def collate(self, rows: Indices, epoch: int) -> Collated:
        starts = self._layout(epoch)[0] + rows * self.block
        pad = self.reader.schema[self.key].pad
        ids, lengths = self.stream.pad_blocks(starts, self.block + 1, pad)
        batch = {self.key: torch.from_numpy(ids)}
        if mask_dim(self.reader.schema) is not None and len(set(lengths.tolist())) > 1:
            batch[MASK] = torch.from_numpy(length_mask(lengths, ids.shape[1]))
        texts = self.encoded.rows[self.stream.texts(starts)]
        return Collated(batch, texts.tolist(), [])

    def example(self, row: int, epoch: int) -> ExampleArrays:
        start = self._layout(epoch)[0] + row * self.block
        positions = np.arange(start, min(start + self.block + 1, len(self.stream)))
        return {self.key: self.stream[positions].astype(np.int64)}

    def stack(self, examples: Sequence[ExampleArrays]) -> dict[str, Tensor]:
        batch = super().stack(examples)
        if MASK in batch and bool(batch[MASK].all()):
            del batch[MASK]
        return batch


class ExampleSource(BatchSource):
    """Examples that are read and encoded when a batch is made: images, audio, arrays."""

    def __init__(self, reader: ExampleReader, rows: Indices, lengths: Array | None) -> None:
        self.reader, self.rows = reader, rows
        self.lengths = self.totals = lengths

    def count(self, epoch: int) -> int:
        return len(self.rows)

    def collate(self, rows: Indices, epoch: int) -> Collated:
        return collate_examples(self.reader, self.rows[rows].tolist(), None, epoch)

    def example(self, row: int, epoch: int) -> ExampleArrays:
        index = int(self.rows[row])
        return self.reader.finish(index, self.reader.encode(index), epoch)


def collate_examples(
    reader: ExampleReader,
    indices: list[int],
    encoded: list[dict[str, Array]] | None,
    epoch: int,
) -> Collated:
    """Return the batch of some examples; they are read if their encoded arrays are not given."""
    if not reader.batched:
        return _collate_one_by_one(reader, indices, encoded, epoch)
    try:
        if encoded is None:
            columns: Mapping[str, Arrays] = reader.encode_many(np.array(indices))
        else:
            columns = {key: [arrays[key] for arrays in encoded] for key in encoded[0]}
        columns = reader.transform_many(indices, columns, epoch)
        return Collated(collate_columns(reader.schema, columns), indices, [])
    except ZooError:
        return _collate_one_by_one(reader, indices, encoded, epoch)


def _collate_one_by_one(
    reader: ExampleReader,
    indices: list[int],
    encoded: list[dict[str, Array]] | None,
    epoch: int,
) -> Collated:
    """Return the batch without the examples that cannot be used, and their errors."""
    examples, used, errors = [], [], []
    for number, index in enumerate(indices):
        try:
            arrays = reader.encode(index) if encoded is None else encoded[number]
            examples.append(reader.finish(index, arrays, epoch))
            used.append(index)
        except DataError as error:
            errors.append((index, error))
    return Collated(collate(reader.schema, examples) if examples else None, used, errors)
