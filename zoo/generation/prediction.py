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
from zoo.interfaces import Model, Preprocessor
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.registry.component_registry import ComponentRegistry

TARGET = "target"


@dataclass(frozen=True)
class Prediction:
    """The most likely class of an input, its probability, and the classes after it."""

    label: str
    probability: float
    top: list[tuple[str, float]]


def can_predict(model: Model) -> bool:
    """Return whether a model computes the logits of one class for each item."""
    schema = model.output_schema()
    return schema is not None and (schema.logits, schema.targets) == ("item", "class")


@torch.no_grad()
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
    """
    if not can_predict(model):
        raise ZooError(f"model '{model.name}' does not compute one class for each item")
    if top_k < 1:
        raise ZooError(f"top_k is {top_k}, but must be at least 1")
    preprocessors = build_preprocessors(model, registry=registry)
    batch = encode_inputs(model, preprocessors, _to_examples(model, preprocessors, inputs))
    if TARGET not in batch:
        size = len(next(iter(batch.values())))
        batch[TARGET] = torch.zeros(size, dtype=torch.long, device=model_device(model))
    with evaluation_mode(model):
        logits: Tensor = model(batch).logits[:, 0]  # [B, C]
    values, classes = logits.float().softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    names = preprocessors.get(TARGET)
    rows = zip(values[:, :top_k].tolist(), classes[:, :top_k].tolist(), strict=True)
    return [_to_prediction(probabilities, ids, names) for probabilities, ids in rows]


def _to_prediction(
    probabilities: Sequence[float], ids: Sequence[int], names: Preprocessor | None
) -> Prediction:
    labels = [str(number) if names is None else names.decode([number]) for number in ids]
    top = list(zip(labels, probabilities, strict=True))
    return Prediction(*top[0], top)


def _to_examples(
    model: Model, preprocessors: Mapping[str, Preprocessor], inputs: Sequence[Any]
) -> list[Mapping[str, Any]]:
    schema = model.batch_schema(inference=True) or {}
    keys = [key for key, field in schema.items() if not field.optional]
    missing = [key for key in keys if key not in preprocessors]
    if missing or not keys:
        names = ", ".join(f"'{key}'" for key in missing)
        raise ZooError(
            f"model '{model.name}' has no preprocessor for {names or 'its inputs'}; add it to the "
            "section 'preprocessing' of the spec, or call the model with a batch of tensors"
        )
    examples: list[Mapping[str, Any]] = []
    for number, value in enumerate(to_list(inputs), 1):
        example = value if isinstance(value, Mapping) else {keys[0]: value}
        if set(example) != set(keys):
            expected = ", ".join(f"'{key}'" for key in keys)
            found = ", ".join(f"'{key}'" for key in example)
            raise ZooError(f"input {number} has {found}, but the model takes {expected}")
        examples.append(example)
    return examples
