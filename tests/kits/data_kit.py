"""Small datasets and preprocessors, and models for their batches."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import zoo
from zoo.data.batches import open_batches
from zoo.data.text_lines import TextLines
from zoo.errors import DataError
from zoo.interfaces import Entry
from zoo.interfaces.signature import FromParent
from zoo.plugin import Blueprint, Dataset, Examples, Field, Preprocessor, TensorSchema
from zoo.spec.training import Batching

SEQ2SEQ = {
    "zoo": 1,
    "name": "tiny",
    "model": {
        "type": "seq2seq",
        "source": {"type": "token", "vocab": 50, "dim": 4},
        "encoder": {"type": "gru", "hidden": 4},
        "decoder": {"type": "plain-rnn", "hidden": 4},
    },
    "objective": "cross-entropy",
}
LANGUAGE_MODEL = {
    "zoo": 1,
    "name": "tiny-lm",
    "model": {
        "type": "language-model",
        "embedding": {"type": "token", "vocab": 50, "dim": 4, "padding": None},
        "decoder": {"type": "plain-rnn", "hidden": 4, "init": "zeros"},
    },
    "objective": "cross-entropy",
}


CLASSIFIER = {
    "zoo": 1,
    "name": "tiny-classifier",
    "model": {
        "type": "classifier",
        "source": {"type": "patches", "size": 3, "dim": 4},
        "encoder": {"type": "gru", "hidden": 4},
        "classes": 5,
    },
    "objective": "cross-entropy",
}


class ListExamples(Examples):
    """Examples in memory; a value that is an exception is raised."""

    def __init__(self, columns: dict[str, list[Any]], sizes: Sequence[int] | None) -> None:
        self.columns, self.listed_sizes = columns, sizes

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, index):
        example = {key: values[index] for key, values in self.columns.items()}
        for value in example.values():
            if isinstance(value, Exception):
                raise value
        return example

    def origin(self, index):
        return f"list:{index + 1}"

    def sizes(self):
        return self.listed_sizes


class ListDataset(Dataset):
    """A dataset of lists in memory."""

    name: ClassVar[str] = "list"

    def __init__(self, *, columns: Any, fields: Any, sizes: Any = None) -> None:
        self.columns, self.declared, self.sizes = columns, fields, sizes

    def fields(self):
        return self.declared

    def open(self, *, evaluation=False):
        return ListExamples(self.columns, self.sizes)

    @classmethod
    def write_example(cls, folder: Path):
        return {}


class DigitLines(Dataset):
    """Pairs of lines of two text files."""

    name: ClassVar[str] = "digit-lines"

    def __init__(self, *, source: str, target: str) -> None:
        self.paths = {"source": source, "target": target}

    def fields(self):
        return {"source": Field("text"), "target": Field("text")}

    def open(self, *, evaluation=False):
        return LineExamples({key: TextLines(path) for key, path in self.paths.items()})

    @classmethod
    def write_example(cls, folder: Path):
        return {}


class LineExamples(Examples):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(next(iter(self.files.values())))

    def __getitem__(self, index):
        return {key: lines[index] for key, lines in self.files.items()}

    def origin(self, index):
        return f"source:{index + 1}"


class Digits(Preprocessor):
    """Encodes a text of words such as "w7" as their numbers."""

    name: ClassVar[str] = "digits"
    content = "text"

    def __init__(self, *, schema: FromParent[TensorSchema]) -> None:
        self.schema = schema

    def outputs(self, key):
        return {key: self.schema._replace(dims=("B", "S"), dtype="integer")}

    def encode(self, value):
        try:
            return np.array([int(word[1:]) for word in value.split()], dtype=np.int64)
        except ValueError:
            raise DataError(f"{value!r} is not a text of numbered words") from None

    def example(self, rng):
        return "w3 w4"

    @classmethod
    def example_schema(cls):
        return TensorSchema(("B", "S"), "integer", below=50)


class Noise(Preprocessor):
    """Adds random noise to arrays."""

    name: ClassVar[str] = "noise"
    content = "array"

    def outputs(self, key):
        return {key: TensorSchema(dtype="float")}

    def encode(self, value):
        return np.asarray(value, dtype=np.float32)

    def transform(self, key, array, rng):
        return {key: array + rng.standard_normal(array.shape, dtype=np.float32)}

    def example(self, rng):
        return rng.random(3)

    @classmethod
    def example_schema(cls):
        return TensorSchema(("B", 3), "float")


def registered(component, **params):
    """Return a blueprint of a component as if a plugin had registered it."""
    return replace(Blueprint.of(component, **params), entry=Entry(component, "kit", "kit", "1"))


@cache
def compose(name):
    """Return the model of a spec of this file."""
    specs = {spec["name"]: spec for spec in (SEQ2SEQ, LANGUAGE_MODEL, CLASSIFIER)}
    return zoo.compose(specs[name])


def text(length, rng):
    """Return a text of this many words, from 3 to 49."""
    return " ".join(f"w{number}" for number in rng.integers(3, 50, length))


def parallel_columns(count, seed=0):
    """Return the columns of random pairs of texts of 1 to 12 words."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 13, (2, count))
    return {
        key: [text(length, rng) for length in lengths[row]]
        for row, key in enumerate(("source", "target"))
    }


def text_batches(columns, batching=None, *, spec=SEQ2SEQ, model=None, seed=0, **options):
    """Open the batches of columns of texts for a model."""
    fields = {key: Field("text") for key in columns}
    dataset = Blueprint(ListDataset, {"columns": columns, "fields": fields})
    model = model or compose(spec["name"])
    schema = model.batch_schema()
    preprocessors = {key: Digits(schema=schema[key]) for key in columns if key in schema}
    return open_batches(
        dataset, model, preprocessors, batching or Batching(items=8), seed=seed, **options
    )


def array_batches(count, batching, *, bad=None, noise=True, **options):
    """Open the batches of random images with labels, to which noise is added.

    Args:
        bad: arrays in place of some images, by index.
        noise: False for images without noise.
    """
    rng = np.random.default_rng(0)
    images = list(rng.random((count, 3, 3, 3), dtype=np.float32))
    for index, array in (bad or {}).items():
        images[index] = array
    columns = {"source": images, "target": list(rng.integers(0, 5, count))}
    fields = {
        "source": Field("array", TensorSchema(("B", 3, "H", "W"), "float")),
        "target": Field("array", TensorSchema(("B",), "integer")),
    }
    dataset = Blueprint(ListDataset, {"columns": columns, "fields": fields})
    model = compose(CLASSIFIER["name"])
    preprocessors = {"source": Noise()} if noise else {}
    return open_batches(dataset, model, preprocessors, batching, seed=0, **options)


class Bytes(Digits):
    """Encodes a text as the IDs of its bytes."""

    name: ClassVar[str] = "bytes"

    def encode(self, value):
        return np.frombuffer(value.encode(), np.uint8) % 47 + 3


def byte_batches(path, batching):
    """Open the batches of the lines of a file for a language model."""
    model = compose(LANGUAGE_MODEL["name"])
    preprocessors = {"target": Bytes(schema=model.batch_schema()["target"])}
    dataset = Blueprint.of(TargetLines, path=path)
    return open_batches(dataset, model, preprocessors, batching, seed=0)


class TargetLines(DigitLines):
    """The lines of a file as targets."""

    name: ClassVar[str] = "target-lines"

    def __init__(self, *, path: str) -> None:
        self.paths = {"target": path}

    def fields(self):
        return {"target": Field("text")}
