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
from zoo.generation.text_inputs import get_tokenizer
from zoo.interfaces import BatchSchema, Model, Outputs, Preprocessor
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.registry.component_registry import ComponentRegistry

SOURCE, TARGET = "source", "target"


@dataclass(frozen=True)
class Prediction:
    """The most likely class, its probability, and the most likely classes with theirs.

    If an item can have several labels, each has a probability of its own.
    """

    label: str
    probability: float
    top: list[tuple[str, float]]


def can_predict(model: Model, logits: str = "item") -> bool:
    """Return whether a model computes the logits of classes for each item, or of one class for
    each position if `logits` is "position"."""
    schema = model.output_schema()
    targets = ("class", "multi-label") if logits == "item" else ("class",)
    return schema is not None and schema.logits == logits and schema.targets in targets


def predict(
    model: Model,
    inputs: Sequence[Any],
    *,
    top_k: int = 5,
    registry: ComponentRegistry | None = None,
) -> list[Prediction]:
    """Predict the class of each input, in evaluation mode.

    Args:
        model: a model with the logits of the classes of each item, such as a classifier.
        inputs: texts, paths of files, arrays of images, or (samples, rate), as the preprocessor of
            the model takes them; for a model with several inputs, mappings of key to value.
        top_k: number of classes in `Prediction.top`.

    Raises:
        DataError: if an input cannot be used, such as an empty text.
    """
    if not can_predict(model):
        raise ZooError(
            f"model '{model.name}' does not compute one class for each item{_hint(model)}"
        )
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
            tokens, without those that its tokenizer adds to every text, or a node classifier, whose
            inputs are mappings, ``{"features": array [N, F], "edges": array [E, 2]}``.
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
        dtype = torch.float if is_multi_label(model) else torch.long
        batch[TARGET] = torch.zeros(shape, dtype=dtype, device=model_device(model))
    with evaluation_mode(model):
        outputs: Outputs = model(batch)  # logits [B, T, C]
    logits = outputs.logits.float()
    probabilities = logits.sigmoid() if is_multi_label(model) else logits.softmax(dim=-1)
    shown = outputs.mask & ~_added_positions(model, preprocessors, batch, outputs.mask)
    return [
        _to_predictions(rows[mask], top_k, preprocessors.get(TARGET))
        for rows, mask in zip(probabilities, shown, strict=True)
    ]


def _hint(model: Model) -> str:
    """Return what to do with a model whose classes cannot be predicted."""
    if can_predict(model, "position"):
        return "; use zoo.predict_positions"
    schema = model.output_schema()
    if schema is not None and schema.logits == "feature":
        return "; it gives features: call it with a batch, its outputs have them as 'logits'"
    return ""


def _added_positions(
    model: Model,
    preprocessors: Mapping[str, Preprocessor],
    batch: Mapping[str, Tensor],
    mask: Tensor,
) -> Tensor:
    """Return a mask [B, S] of the tokens that the tokenizer adds to a text, such as "[CLS]"."""
    source = preprocessors.get(SOURCE)
    is_text = source is not None and source.content == "text"
    if not (is_text and can_predict(model, "position")):
        return torch.zeros_like(mask)
    added = torch.tensor(added_token_ids(model), dtype=torch.long, device=mask.device)
    return torch.isin(batch[SOURCE], added)


def added_token_ids(model: Model) -> list[int]:
    """Return the tokens that the tokenizer of the source adds to every text."""
    tokenizer = get_tokenizer(model, SOURCE)
    return [] if tokenizer is None else sorted(tokenizer.added_ids)


def is_multi_label(model: Model) -> bool:
    """Return whether an item can have several labels."""
    schema = model.output_schema()
    return schema is not None and schema.targets == "multi-label"


def _target_shape(model: Model, batch: Mapping[str, Tensor]) -> list[int]:
    """Return the shape of the targets, which the model takes and prediction does not have."""
    schema: BatchSchema = model.batch_schema() or {}
    sizes: dict[str | int, int] = {}
    for key, tensor in batch.items():
        sizes.update(zip(schema[key].dims or (), tensor.shape, strict=False))
    dims = schema[TARGET].dims or ("B",)
    sizes.update({dim: dim for dim in dims if isinstance(dim, int)})
    unknown = [dim for dim in dims if dim not in sizes]
    if unknown:
        raise ZooError(f"the length {unknown[0]} of the targets does not follow from the inputs")
    return [sizes[dim] for dim in dims]


def _to_predictions(
    probabilities: Tensor, top_k: int, names: Preprocessor | None
) -> list[Prediction]:
    """Return the predictions of rows of probabilities [T, C]."""
    values, classes = probabilities.sort(dim=-1, descending=True, stable=True)
    found = []
    for row, ids in zip(values[:, :top_k].tolist(), classes[:, :top_k].tolist(), strict=True):
        labels = [str(number) if names is None else names.decode([number]) for number in ids]
        top = list(zip(labels, row, strict=True))
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
