"""Reads examples and applies the preprocessors."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from zoo.data.collation import prepare_example, require_values
from zoo.data.order import Indices, seed_sequence
from zoo.data.padding import MASK
from zoo.data.random_numbers import random_generators
from zoo.data.special_tokens import add_special_tokens_to_all, count_special_tokens
from zoo.errors import DataError, ZooError
from zoo.interfaces import (
    Array,
    Arrays,
    BatchSchema,
    Dataset,
    Example,
    Examples,
    Model,
    Preprocessor,
    TensorSchema,
)

TABLE_CONTENTS = ("text", "texts", "label", "labels", "messages")
"""Contents that are small enough to encode before training."""
MAX_KNOWN = 2**16
"""Number of texts and labels whose arrays are kept."""


class ExampleReader:
    """The examples of a dataset as arrays for the batch of a model.

    Args:
        dataset: the dataset, for its fields.
        examples: the open dataset.
        model: the model, for its batch schema.
        preprocessors: by key of the batch.
        seed: seed of the random transforms.
        evaluation: apply only the transforms that make other keys, and use the first of several
            references.
    """

    def __init__(
        self,
        dataset: Dataset,
        examples: Examples,
        model: Model,
        preprocessors: Mapping[str, Preprocessor],
        *,
        seed: int,
        evaluation: bool,
    ) -> None:
        schema = model.batch_schema()
        if schema is None:
            raise ZooError(f"model '{model.name}' does not declare its batch, so it has no batches")
        fields = dataset.fields()
        self.schema: BatchSchema = schema
        self.examples = examples
        self.batched = not any(isinstance(field.below, str) for field in schema.values())
        """Whether limits of IDs are equal for all examples, so that a batch is checked at once."""
        self.seed = seed
        self.evaluation = evaluation
        self.arrays = [
            key
            for key, field in fields.items()
            if key in schema and key not in preprocessors and field.content == "array"
        ]
        self.preprocessors = {key: preprocessors[key] for key in fields if key in preprocessors}
        self.contents = {key: fields[key].content for key in self.preprocessors}
        self.outputs = {key: item.outputs(key) for key, item in self.preprocessors.items()}
        self._known: dict[str, dict[Any, Array]] = {}
        self._check_keys(f"model '{model.name}'", f"dataset '{dataset.name}'")

    def _check_keys(self, model: str, dataset: str) -> None:
        made = {*self.arrays, *(key for keys in self.outputs.values() for key in keys)}
        missing = [key for key, field in self.schema.items() if key not in made | {"mask"}]
        missing = [key for key in missing if not self.schema[key].optional]
        if missing:
            names = ", ".join(f"'{key}'" for key in missing)
            found = ", ".join(f"'{key}'" for key in sorted(made)) or "nothing"
            raise ZooError(
                f"the batch of {model} needs {names}, but {dataset} with its preprocessors gives "
                f"{found}; add a field to the dataset or a preprocessor for it"
            )

    def fits_table(self) -> bool:
        """Return whether all keys are token IDs or labels, encoded before training."""
        return not self.arrays and all(
            content in TABLE_CONTENTS and self._fits_table(key)
            for key, content in self.contents.items()
        )

    def _fits_table(self, key: str) -> bool:
        schema = self.outputs[key].get(key)
        if schema is None or schema.dtype != "integer" or not schema.dims:
            return False
        if len(schema.dims) != len(self.field(key).dims or schema.dims):
            return False  # IDs of several channels
        if self.contents[key] == "texts" and len(schema.dims) < 3:
            return False  # several texts in one array
        if len(schema.dims) == 3:  # texts; the mask that is made has their number
            mask = self.schema.get(MASK)
            changed = count_special_tokens(schema) or self.transforms(key)
            return not changed and (mask is None or schema.dims[2] not in (mask.dims or ()))
        return len(schema.dims) < 3

    def transforms(self, key: str) -> bool:
        """Return whether the arrays of a key are transformed each time they are read."""
        item = self.preprocessors.get(key)
        if item is None or type(item).transform is Preprocessor.transform:
            return False
        return not self.evaluation or set(self.outputs[key]) != {key}

    def field(self, key: str) -> TensorSchema:
        """Return the schema of a key of the dataset."""
        return self.schema[key] if key in self.schema else self.outputs[key][key]

    def complete(self, key: str, arrays: Arrays) -> Arrays:
        """Return the encoded arrays of a key as `transform_many` takes them: with start and end
        tokens, unless they are added after a transform."""
        if self.transforms(key):
            return arrays
        return add_special_tokens_to_all(arrays, self.field(key))

    def value(self, key: str, example: Example) -> Any:
        """Return the value of a field, the first one of several references."""
        return self._first(key, example[key])

    def _first(self, key: str, value: Any) -> Any:
        several = self.contents.get(key) == "text" and isinstance(value, (list, tuple))
        return value[0] if several else value

    def encode(self, index: int) -> dict[str, Array]:
        """Read an example and return its arrays by key of the dataset, completed."""
        with add_origin(self.examples, index):
            example = self.examples[index]
            arrays = {key: np.asarray(example[key]) for key in self.arrays}
            for key, item in self.preprocessors.items():
                arrays[key] = item.encode(self.value(key, example))
                require_values(key, arrays[key], self.field(key))
            return {key: self.complete(key, [array])[0] for key, array in arrays.items()}

    def encode_many(self, indices: Indices) -> dict[str, Arrays]:
        """Read several examples and return their arrays by key of the dataset, completed.

        Raises:
            ZooError: if one of them is not valid, without its origin.
        """
        values = self.examples.read_many(indices)
        columns: dict[str, Arrays] = {}
        for key in self.arrays:
            column = values[key]
            whole = isinstance(column, np.ndarray)
            columns[key] = column if whole else [np.asarray(value) for value in column]
        for key, item in self.preprocessors.items():
            if self.contents[key] in ("text", "label"):
                columns[key] = self._encode_known(key, values[key])
            else:
                columns[key] = item.encode_many(values[key])  # type: ignore[arg-type]
            for array in columns[key]:
                require_values(key, array, self.field(key))
        return {key: self.complete(key, column) for key, column in columns.items()}

    def _encode_known(self, key: str, column: Sequence[Any] | Array) -> list[Array]:
        """Return the arrays of texts or labels; those of earlier calls are not encoded again."""
        values = [self._first(key, value) for value in column]
        if not all(type(value) in (str, int) for value in values):
            return list(self.preprocessors[key].encode_many(values))
        known = self._known.setdefault(key, {})
        if len(known) > MAX_KNOWN:
            known.clear()
        new = [value for value in dict.fromkeys(values) if value not in known]
        if new:
            arrays = self.preprocessors[key].encode_many(new)
            known.update(zip(new, arrays, strict=True))
        return [known[value] for value in values]

    def transform(self, index: int, encoded: Mapping[str, Array], epoch: int) -> dict[str, Array]:
        """Return the arrays of one example after random transforms."""
        columns = self.transform_many([index], {k: [a] for k, a in encoded.items()}, epoch)
        return {key: column[0] for key, column in columns.items()}

    def transform_many(
        self, indices: list[int], encoded: Mapping[str, Arrays], epoch: int
    ) -> dict[str, Arrays]:
        """Return the arrays of some examples after random transforms, which depend on seed, epoch,
        example and key only. Start and end tokens are added to what is transformed."""
        columns: dict[str, Arrays] = {}
        for key, column in encoded.items():
            if self.transforms(key):
                seed = seed_sequence("transform", self.seed, epoch, zlib.crc32(key.encode()))
                rngs = random_generators(seed, indices)
                transformed = self.preprocessors[key].transform_many(key, column, rngs)
                for name, arrays in transformed.items():
                    field = self.schema.get(name, self.outputs[key].get(name, TensorSchema()))
                    columns[name] = add_special_tokens_to_all(arrays, field)
            else:
                columns[key] = column
        return columns

    def finish(self, index: int, encoded: Mapping[str, Array], epoch: int) -> dict[str, Array]:
        """Return the arrays of the batch: transformed and checked."""
        with add_origin(self.examples, index):
            return prepare_example(self.schema, self.transform(index, encoded, epoch))


@contextmanager
def add_origin(examples: Examples, index: int) -> Iterator[None]:
    """Raise DataError with the origin of an example for an error in the block."""
    try:
        yield
    except ZooError as error:
        if isinstance(error, DataError) and error.origin:
            raise
        message = error.message if isinstance(error, DataError) else str(error)
        raise DataError(message, examples.origin(index)) from error


def iterate_values(examples: Examples, key: str, *, skip: bool) -> Iterator[Any]:
    """Yield the values of a field of all examples.

    Args:
        skip: leave out examples that raise DataError.
    """
    for index in range(len(examples)):
        try:
            with add_origin(examples, index):
                value = examples[index][key]
        except DataError as error:
            if not skip:
                error.skippable = True
                raise
            continue
        yield value
