"""Laws of datasets. They run on the files that `Dataset.write_example` writes."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from zoo.errors import DataError
from zoo.interfaces import Audio, Dataset, Examples, Field, TensorSchema
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable

_NUMBERS = {"integer": "iu", "float": "f", "bool": "b", "number": "iufb"}


@contextmanager
def _example(config: Configuration) -> Iterator[tuple[Dataset, Path]]:
    """Yield the dataset with its example files, and their folder."""
    with TemporaryDirectory() as folder:
        params = config.cls.write_example(Path(folder))  # type: ignore[attr-defined]
        params = {**config.params, **params, **config.overrides}
        yield Configuration(config.cls, params, {}).build(), Path(folder)


def declared_fields(config: Configuration) -> None:
    """Examples have the declared fields, with values of the declared types; there is at least one
    example, and `sizes` returns a length for each."""
    with _example(config) as (dataset, _):
        fields = dataset.fields()
        for evaluation in (False, True):
            examples = dataset.open(evaluation=evaluation)
            assert len(examples) > 0, "the example files have no examples"
            for index in range(len(examples)):
                example = examples[index]
                assert example.keys() == fields.keys(), (
                    f"example {index} has {list(example)}, but declared are {list(fields)}"
                )
                for name, field in fields.items():
                    problem = _problem(example[name], field, evaluation)
                    assert not problem, f"'{name}' of example {index} {problem}"
            sizes = examples.sizes()
            assert sizes is None or len(sizes) == len(examples), "sizes has another length"


def _problem(value: Any, field: Field, evaluation: bool) -> str:
    """Return how a value differs from the declaration of its field, or an empty string."""
    many = isinstance(value, (list, tuple)) and len(value) > 0
    items = list(value) if many else [value]
    if field.content in ("text", "texts"):
        valid = all(isinstance(item, str) for item in items)
        valid = valid and (many == (field.content == "texts") or (many and evaluation))
    elif field.content in ("label", "labels"):
        types = (str, int, np.integer)
        valid = all(isinstance(item, types) and not isinstance(item, bool) for item in items)
        valid = valid and many == (field.content == "labels")
    elif field.content == "messages":
        valid = isinstance(value, list) and all({"role", "content"} <= set(each) for each in value)
    elif field.content == "audio":
        valid = isinstance(value, Audio) and _is_array(value.samples, "f", 1) and value.rate > 0
        valid = valid and value.samples.dtype == np.float32
    elif field.content == "image":
        valid = _is_array(value, "u", 3) and value.shape[2] in (1, 3) and value.dtype == np.uint8
    else:
        assert field.schema is not None, "a field with arrays must declare their schema"
        return _array_problem(value, field.schema)
    return "" if valid else f"is declared as {field.content}, but is {str(value)[:60]!r}"


def _is_array(value: Any, kinds: str, dims: int | None = None) -> bool:
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in kinds
    return is_array and dims in (None, value.ndim)


def _array_problem(value: Any, schema: TensorSchema) -> str:
    if not _is_array(value, _NUMBERS[schema.dtype]):
        return f"is not an array with {schema.dtype} values"
    if schema.dims is None:
        return ""
    dims = schema.dims[1:]
    pairs = zip(value.shape, dims, strict=False)
    valid = len(value.shape) == len(dims) and schema.dims[0] == "B"
    if not valid or any(isinstance(dim, int) and size != dim for size, dim in pairs):
        return f"has shape {list(value.shape)}, but declared is {schema.format()}"
    return ""


def same_examples(config: Configuration) -> None:
    """Reading in any order, again, by several threads, after pickling and after opening again
    returns the same examples; `read_many` returns their values."""
    with _example(config) as (dataset, _):
        examples = dataset.open()
        order = list(range(len(examples)))
        first = [examples[index] for index in order]
        _assert_same(first, [examples[index] for index in reversed(order)][::-1], "in reverse")
        columns = examples.read_many(np.array(order[::-1]))
        many = [{name: columns[name][index] for name in first[0]} for index in order]
        _assert_same(first[::-1], many, "in read_many")
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(examples.__getitem__, order * 4))
        _assert_same(first * 4, found, "by several threads")
        copy: Examples = pickle.loads(pickle.dumps(examples))
        _assert_same(first, [copy[index] for index in order], "after pickling")
        again = dataset.open()
        _assert_same(first, [again[index] for index in order], "after opening again")


def _assert_same(expected: list[Any], found: list[Any], when: str) -> None:
    for index, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert _equal(dict(a), dict(b)), f"example {index} differs {when}"


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)


def distinct_origins(config: Configuration) -> None:
    """Every example has its own origin, a single line of text."""
    with _example(config) as (dataset, _):
        for evaluation in (False, True):
            examples = dataset.open(evaluation=evaluation)
            origins = [examples.origin(index) for index in range(len(examples))]
            assert all(o and "\n" not in o for o in origins), f"an origin is not a line: {origins}"
            assert len(set(origins)) == len(origins), "two examples have the same origin"


def missing_files(config: Configuration) -> None:
    """Without its files a dataset can be built and has its fields, but `open` raises DataError with
    the path of a missing file."""
    with TemporaryDirectory() as folder:
        params = config.cls.write_example(Path(folder))  # type: ignore[attr-defined]
        if not any(Path(folder).iterdir()):
            raise NotApplicable("it makes its examples and reads no files")
        _clear(Path(folder))
        params = {**config.params, **params, **config.overrides}
        dataset: Dataset = Configuration(config.cls, params, {}).build()
        assert dataset.fields(), "the dataset has no fields"
        message = ""
        try:
            dataset.open()
        except DataError as error:
            message = str(error)
        assert message, "`open` without files does not raise DataError"
        assert folder in message, f"the message does not name the file: {message}"


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def unchanged_files(config: Configuration) -> None:
    """Opening and reading do not change, add or remove files."""
    with _example(config) as (dataset, folder):
        before = _contents(folder)
        examples = dataset.open()
        for index in range(len(examples)):
            examples[index]
        assert _contents(folder) == before, "files were changed, added or removed"


def _contents(folder: Path) -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


LAWS = (
    Law("declared-fields", declared_fields),
    Law("same-examples", same_examples),
    Law("distinct-origins", distinct_origins),
    Law("missing-files", missing_files),
    Law("unchanged-files", unchanged_files),
)
