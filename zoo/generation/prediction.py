"""Prediction of classes from raw values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zoo.data.preprocessing import build_preprocessors
from zoo.errors import ZooError
from zoo.generation.raw_inputs import encode_inputs, model_device, to_list
from zoo.interfaces import BatchSchema, Model, Outputs, Preprocessor
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.registry.component_registry import ComponentRegistry

TARGET = "target"


@dataclass(frozen=True)
class Prediction:
    """The most likely class, its probability, and the most likely classes with theirs."""

    label: str
    probability: float
    top: list[tuple[str, float]]


def can_predict(model: Model, logits: str = "item") -> bool:
    """Return whether a model computes the logits of one class for each item, or for each position
    if `logits` is "position"."""
    schema = model.output_schema()
    return schema is not None and (schema.logits, schema.targets) == (logits, "class")


def predict(
    model: Model,
    inputs: Sequence[Any],
    *,
    top_k: int = 5,
    registry: ComponentRegistry | None = None,
) -> list[Prediction]:
    """Predict the class of each input, in evaluation mode.

    Args:
        model: a model with the logits of one class for each item, such as a classifier.
        inputs: texts, paths of files, arrays of images, or (samples, rate), as the preprocessor of
            the model takes them; for a model with several inputs, mappings of key to value.
        top_k: number of classes in `Prediction.top`.

    Raises:
        DataError: if an input cannot be used, such as an empty text.
    """
    if not can_predict(model):
        hint = "; use zoo.predict_positions" if can_predict(model, "position") else ""
        raise ZooError(f"model '{model.name}' does not compute one class for each item{hint}")
    return [rows[0] for rows in _predict(model, inputs, top_k, registry)]


def predict_positions(
    model: Model,
    inputs: Sequence[Any],
    *,
    top_k: int = 5,
    registry: ComponentRegistry | None = None,
) -> list[list[Prediction]]:
    """Predict the class of each position of each input, in evaluation mode.

    Args:
        model: a model with the logits of one class for each position: a tagger, whose positions are
            tokens, or a node classifier, whose inputs are mappings, ``{"features": array [N, F],
            "edges": array [E, 2]}``.
        inputs: as those of `predict`.
        top_k: number of classes in `Prediction.top`.

    Raises:
        DataError: if an input cannot be used, such as an empty text.
    """
    if not can_predict(model, "position"):
        raise ZooError(f"model '{model.name}' does not compute one class for each position")
    return _predict(model, inputs, top_k, registry)


@torch.no_grad()
def _predict(
    model: Model, inputs: Sequence[Any], top_k: int, registry: ComponentRegistry | None
) -> list[list[Prediction]]:
    """Return the predictions at the positions of each item; an item with one class has one."""
    if top_k < 1:
        raise ZooError(f"top_k is {top_k}, but must be at least 1")
    preprocessors = build_preprocessors(model, registry=registry)
    batch = encode_inputs(model, preprocessors, _to_examples(model, preprocessors, inputs))
    if TARGET not in batch:
        shape = _target_shape(model, batch)
        batch[TARGET] = torch.zeros(shape, dtype=torch.long, device=model_device(model))
    with evaluation_mode(model):
        outputs: Outputs = model(batch)  # logits [B, T, C]
    names = preprocessors.get(TARGET)
    return [
        _to_predictions(logits[mask], top_k, names)
        for logits, mask in zip(outputs.logits, outputs.mask, strict=True)
    ]


def _target_shape(model: Model, batch: Mapping[str, Tensor]) -> list[int]:
    """Return the shape of the targets, which the model takes and prediction does not have."""
    schema: BatchSchema = model.batch_schema() or {}
    sizes: dict[str | int, int] = {}
    for key, tensor in batch.items():
        sizes.update(zip(schema[key].dims or (), tensor.shape, strict=False))
    dims = schema[TARGET].dims or ("B",)
    unknown = [dim for dim in dims if dim not in sizes]
    if unknown:
        raise ZooError(f"the length {unknown[0]} of the targets does not follow from the inputs")
    return [sizes[dim] for dim in dims]


def _to_predictions(logits: Tensor, top_k: int, names: Preprocessor | None) -> list[Prediction]:
    """Return the predictions of rows of logits [T, C]."""
    values, classes = logits.float().softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    found = []
    for probabilities, ids in zip(
        values[:, :top_k].tolist(), classes[:, :top_k].tolist(), strict=True
    ):
        labels = [str(number) if names is None else names.decode([number]) for number in ids]
        top = list(zip(labels, probabilities, strict=True))
        found.append(Prediction(*top[0], top))
    return found


def _to_examples(
    model: Model, preprocessors: Mapping[str, Preprocessor], inputs: Sequence[Any]
) -> list[Mapping[str, Any]]:
    schema = model.batch_schema(inference=True) or {}
    keys = [key for key, field in schema.items() if not field.optional]
    examples: list[Mapping[str, Any]] = []
    for number, value in enumerate(to_list(inputs), 1):
        is_example = isinstance(value, Mapping)
        missing = [key for key in keys if key not in preprocessors]
        if not keys or (missing and not is_example):
            names = ", ".join(f"'{key}'" for key in missing)
            raise ZooError(
                f"model '{model.name}' has no preprocessor for {names or 'its inputs'}; add it to "
                "the section 'preprocessing' of the spec, or call the model with a batch of tensors"
            )
        example = value if is_example else {keys[0]: value}
        if set(example) != set(keys):
            expected = ", ".join(f"'{key}'" for key in keys)
            found = ", ".join(f"'{key}'" for key in example)
            raise ZooError(f"input {number} has {found}, but the model takes {expected}")
        examples.append(example)
    return examples
