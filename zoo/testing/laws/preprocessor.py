"""Laws of preprocessors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np

from zoo.errors import DataError
from zoo.interfaces import Array, Preprocessor, TensorSchema
from zoo.interfaces.signature import parameters
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable

KEY = "source"
KINDS = {"integer": "iu", "float": "f", "bool": "b", "number": "iufb"}
"""The kinds of numpy dtypes of each dtype of a schema."""


def _examples(preprocessor: Preprocessor, count: int = 6) -> list[Any]:
    rng = np.random.default_rng(0)
    return [preprocessor.example(rng) for _ in range(count)]


def _equal(found: Array, expected: Array, what: str) -> None:
    assert found.dtype == expected.dtype, f"{what}: {found.dtype}, not {expected.dtype}"
    assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "f"), (
        f"{what}: the arrays differ"
    )


def declared_outputs(config: Configuration) -> None:
    """The arrays of an example have the keys, shapes and dtypes that `outputs` declares."""
    preprocessor = config.build()
    declared = preprocessor.outputs(KEY)
    for number, value in enumerate(_examples(preprocessor)):
        arrays = preprocessor.transform(
            KEY, preprocessor.encode(value), np.random.default_rng(number)
        )
        assert arrays.keys() == declared.keys(), (
            f"the keys are {sorted(arrays)}, but outputs has {sorted(declared)}"
        )
        sizes: dict[str, int] = {}
        for key, array in arrays.items():
            _check_array(key, array, declared[key], sizes)


def _check_array(key: str, array: Array, schema: TensorSchema, sizes: dict[str, int]) -> None:
    assert array.dtype.kind in KINDS[schema.dtype], (
        f"'{key}' has dtype {array.dtype}, but outputs has {schema.dtype}"
    )
    dims = (schema.dims or ("B", *array.shape))[1:]
    fits = len(dims) == array.ndim and all(
        size == (dim if isinstance(dim, int) else sizes.setdefault(dim, size))
        for dim, size in zip(dims, array.shape, strict=True)
    )
    assert fits, f"'{key}' has shape {list(array.shape)}, but outputs has {schema.format()}"
    if isinstance(schema.below, int) and array.size:
        low, high = int(array.min()), int(array.max())
        valid = high < schema.below and (schema.minimum is None or low >= schema.minimum)
        assert valid, f"'{key}' has IDs from {low} to {high}, but outputs has {schema}"


def repeatable_encoding(config: Configuration) -> None:
    """`encode` returns equal arrays for equal values, also after pickling, and keeps the value."""
    preprocessor = config.build()
    other = config.build()
    values = _examples(preprocessor)
    before = copy.deepcopy(values)
    arrays = [preprocessor.encode(value) for value in values]
    copied = pickle.loads(pickle.dumps(preprocessor))
    for value, original, array in zip(values, before, arrays, strict=True):
        assert repr(value) == repr(original), "encode changes the value"
        _equal(preprocessor.encode(value), array, "encoded again")
        _equal(other.encode(value), array, "encoded by a second instance")
        _equal(copied.encode(value), array, "encoded after pickling")


def batched_encoding(config: Configuration) -> None:
    """`encode_many` returns the arrays of `encode`."""
    preprocessor = config.build()
    values = _examples(preprocessor)
    arrays = preprocessor.encode_many(values)
    assert len(arrays) == len(values), f"{len(arrays)} arrays of {len(values)} values"
    for value, array in zip(values, arrays, strict=True):
        _equal(array, preprocessor.encode(value), "encode_many")


def seeded_transform(config: Configuration) -> None:
    """`transform` depends on the array and the generator only, and keeps the array;
    `transform_many` returns the same arrays."""
    preprocessor = config.build()
    values = _examples(preprocessor)
    rngs = (np.random.default_rng(number) for number in range(len(values)))
    batch = preprocessor.transform_many(KEY, preprocessor.encode_many(values), rngs)
    for number, value in enumerate(values):
        array = preprocessor.encode(value)
        before = array.copy()
        first, second = (
            preprocessor.transform(KEY, array, np.random.default_rng(number)) for _ in range(2)
        )
        _equal(array, before, "the array after transform")
        for key in first:
            _equal(second[key], first[key], f"'{key}' with the same seed")
            _equal(batch[key][number], first[key], f"'{key}' of transform_many")


def fitted_parameters(config: Configuration) -> None:
    """`fit` returns valid parameters, for any order of the values, with which all are encoded."""
    own = {p.name: p for p in parameters(config.cls) if not p.from_parent}
    optional = {name for name, p in own.items() if not p.required}
    params = {name: value for name, value in config.params.items() if name not in optional}
    unfitted = Configuration(config.cls, params, {})
    preprocessor = unfitted.build()
    values = _examples(preprocessor, count=12)
    fitted = preprocessor.fit(iter(values))
    assert preprocessor.fit(reversed(values)) == fitted, "fit depends on the order of the values"
    for name, value in fitted.items():
        assert name in own, f"fit returns '{name}', which is not a parameter"
        problems = own[name].validate(value)
        assert not problems, f"fit returns {name}={value!r}: {problems[0][1]}"
    built = Configuration(config.cls, {**params, **fitted}, {}).build()
    for value in values:
        built.encode(value)


def stored_text(config: Configuration) -> None:
    """A preprocessor that is built with the stored text encodes equally."""
    preprocessor = config.build()
    text = preprocessor.stored()
    if text is None:
        raise NotApplicable("it stores no text")
    values = {**config.parent_values(), "stored": text}
    rebuilt = config.blueprint().build(**values)
    assert rebuilt.stored() == text, "the rebuilt preprocessor stores another text"
    for value in _examples(preprocessor):
        _equal(rebuilt.encode(value), preprocessor.encode(value), "encoded with the stored text")


def rejects_other_types(config: Configuration) -> None:
    """`encode` raises DataError for a value of another type."""
    preprocessor = config.build()
    for value in (None, {"value": object()}):
        try:
            preprocessor.encode(value)
        except DataError:
            continue
        raise AssertionError(f"encode accepts {type(value).__name__}")


LAWS = (
    Law("declared-outputs", declared_outputs),
    Law("repeatable-encoding", repeatable_encoding),
    Law("batched-encoding", batched_encoding),
    Law("seeded-transform", seeded_transform),
    Law("fitted-parameters", fitted_parameters),
    Law("stored-text", stored_text),
    Law("rejects-other-types", rejects_other_types),
)
