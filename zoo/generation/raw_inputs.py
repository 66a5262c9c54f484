"""Batches of raw values: texts, files of images and audio, arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zoo.data.collation import collate, prepare_example, require_values
from zoo.data.special_tokens import add_special_tokens
from zoo.errors import DataError, InputError, ZooError, truncate
from zoo.interfaces import Array, BatchSchema, Model, Preprocessor
from zoo.interfaces.module_parts import first_parameter

OneInput = str | Path | Mapping[str, Any] | np.ndarray[Any, Any]
"""One input instead of a list of inputs: a text, the path of a file, an example or an array."""


def is_one_input(inputs: Any) -> bool:
    """Return whether a value is one input, and not a list of inputs."""
    return isinstance(inputs, (str, Path, Mapping, np.ndarray))


def as_inputs(inputs: Any) -> Sequence[Any]:
    """Return the inputs; one input as a list of it."""
    return [inputs] if is_one_input(inputs) else inputs


def to_list(inputs: Any) -> list[Any]:
    """Return the inputs as a list, or raise ZooError if it is a single value or empty."""
    if isinstance(inputs, (str, Path)) or not isinstance(inputs, Sequence):
        raise ZooError(f"inputs is {truncate(repr(inputs), 80)}; expected a list of inputs")
    if not inputs:
        raise ZooError("inputs is empty; expected at least one input")
    return list(inputs)


def encode_inputs(
    model: Model,
    preprocessors: Mapping[str, Preprocessor],
    examples: Sequence[Mapping[str, Any]],
) -> dict[str, Tensor]:
    """Return the batch of raw values for generation or prediction, on the model's device.

    Args:
        preprocessors: by key of the batch; values of other keys are arrays.
        examples: the value of each key: a text, a path of a file, or the value itself.

    Raises:
        DataError: if a value cannot be used, with the number of the input.
    """
    schema = model.batch_schema(inference=True) or {}
    prepared = []
    for number, example in enumerate(examples, 1):
        try:
            arrays = {}
            for key, value in example.items():
                array = _encode(preprocessors.get(key), value)
                require_values(key, array, schema.get(key))
                for name, made in _derived(preprocessors.get(key), key, array, schema).items():
                    field = schema.get(name)
                    arrays[name] = made if field is None else add_special_tokens(made, field)
            prepared.append(prepare_example(schema, arrays))
        except DataError as error:
            if error.origin:
                raise
            raise InputError(error.message, number) from None
    device, dtype = model_device(model), _float_dtype(model)
    return {
        key: tensor.to(device, dtype if tensor.is_floating_point() else tensor.dtype)
        for key, tensor in collate(schema, prepared).items()
    }


def _derived(
    preprocessor: Preprocessor | None, key: str, array: Array, schema: BatchSchema
) -> Mapping[str, Array]:
    """Return the arrays of a key and of others that are made from it; a model need not take all."""
    others = set() if preprocessor is None else set(preprocessor.outputs(key)) - {key}
    optional = any(name in schema and schema[name].optional for name in others)
    if preprocessor is None or not others or optional:
        return {key: array}
    return preprocessor.transform(key, array, np.random.default_rng(0))


def _encode(preprocessor: Preprocessor | None, value: Any) -> Array:
    if preprocessor is not None:
        return preprocessor.encode(read_value(preprocessor, value))
    if isinstance(value, (str, Path)):
        raise DataError(f"expected an array, found {truncate(repr(value), 80)}")
    try:
        return np.asarray(value)
    except ValueError:
        raise DataError("expected an array, found rows of different lengths") from None


def read_value(preprocessor: Preprocessor, value: Any) -> Any:
    """Return a value as `Preprocessor.encode` takes it; a path is read.

    A string is a path unless the preprocessor takes texts or labels.
    """
    is_text = preprocessor.content in ("text", "texts", "label", "labels")
    if isinstance(value, Path) or (isinstance(value, str) and not is_text):
        path = Path(value)
        if path.is_dir():
            raise DataError("it is a folder; name the files in it", str(path))
        if not path.is_file():
            raise DataError("there is no such file", str(path))
        return preprocessor.read(path)
    return value


def model_device(model: Model) -> torch.device:
    """Return the device of a model's parameters."""
    parameter = first_parameter(model)
    return torch.device("cpu") if parameter is None else parameter.device


def _float_dtype(model: Model) -> torch.dtype:
    found = (p.dtype for p in model.parameters() if p.is_floating_point())
    return next(found, torch.get_default_dtype())
