"""Prediction of classes from raw values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor

from zoo.data.preprocessing import build_preprocessors
from zoo.errors import ZooError
from zoo.generation.raw_inputs import OneInput, as_inputs, encode_inputs, is_one_input, to_list
from zoo.generation.text_inputs import get_tokenizer
from zoo.interfaces import Model, Outputs, Preprocessor
from zoo.interfaces.batch_schema import add_zeros
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.registry.component_registry import ComponentRegistry

SOURCE, TARGET = "source", "target"


@dataclass(frozen=True)
class Prediction:
    """The most likely class, its probability, and the most likely classes with theirs.

    If an item can have several labels, each has a separate probability.
    """

    label: str
    probability: float
    top: list[tuple[str, float]]

    def __str__(self) -> str:
        return f"{self.label} {self.probability:.4f}"


@dataclass(frozen=True)
class LabelsPrediction:
    """The labels with a probability above 0.5, and the most likely labels with theirs."""

    labels: list[str]
    top: list[tuple[str, float]]

    def __str__(self) -> str:
        found = [f"{label} {p:.4f}" for label, p in self.top if label in self.labels]
        return "  ".join(found) or "(no label)"


@dataclass(frozen=True)
class ValuesPrediction:
    """The predicted numbers."""

    values: list[float]

    def __str__(self) -> str:
        return " ".join(f"{value:.4f}" for value in self.values)


ItemPrediction = Prediction | LabelsPrediction | ValuesPrediction


def can_predict(model: Model, logits: str = "item") -> bool:
    """Return whether a model predicts a class, labels or numbers for each item, or a class for each
    position if `logits` is "position"."""
    schema = model.output_schema()
    if schema is None or schema.logits != logits:
        return False
    return schema.targets == "class" or (logits == "item" and schema.targets in _BY_TARGETS)


@overload
def predict(
    model: Model,
    inputs: OneInput,
    *,
    top_k: int = 5,
    registry: ComponentRegistry | None = None,
) -> Any: ...


@overload
def predict(
    model: Model,
    inputs: Sequence[Any],
    *,
    top_k: int = 5,
    registry: ComponentRegistry | None = None,
) -> list[Any]: ...


def predict(
    model: Model,
    inputs: OneInput | Sequence[Any],
    *,
    top_k: int = 5,
    registry: ComponentRegistry | None = None,
) -> Any:
    """Predict the class of each input, in evaluation mode.

    Args:
        model: a model with the logits of one class for each item, such as a classifier; or one of
            labels or numbers, such as a classifier with ``multi_label`` or a regressor.
        inputs: texts, paths of files, arrays of images, or (samples, rate), as the preprocessor of
            the model takes them; for a model with several inputs, mappings of key to value.
        top_k: number of classes in `Prediction.top`.

    Returns:
        A `Prediction` for each input; `LabelsPrediction` if an item can have any number of labels,
        `ValuesPrediction` if the model predicts numbers. For one input instead of a list, its
        prediction.

    Raises:
        DataError: if an input cannot be used, such as an empty text.
    """
    if not can_predict(model):
        raise ZooError(
            f"model '{model.name}' does not compute one class for each item{_hint(model)}"
        )
    rows = _predict(model, as_inputs(inputs), top_k, registry)
    found = [row[0] for row in rows]
    return found[0] if is_one_input(inputs) else found


@overload
def predict_positions(
    model: Model,
    inputs: OneInput,
    *,
    top_k: int = 5,
    registry: ComponentRegistry | None = None,
) -> list[Prediction]: ...


@overload
def predict_positions(
    model: Model,
    inputs: Sequence[Any],
    *,
    top_k: int = 5,
    registry: ComponentRegistry | None = None,
) -> list[list[Prediction]]: ...


def predict_positions(
    model: Model,
    inputs: OneInput | Sequence[Any],
    *,
    top_k: int = 5,
    registry: ComponentRegistry | None = None,
) -> list[Prediction] | list[list[Prediction]]:
    """Predict the class of each position of each input, in evaluation mode; of one input instead of
    a list, those of its positions.

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
    rows: list[list[Any]] = [*_predict(model, as_inputs(inputs), top_k, registry)]
    return rows[0] if is_one_input(inputs) else rows


@torch.no_grad()
def _predict(
    model: Model, inputs: Sequence[Any], top_k: int, registry: ComponentRegistry | None
) -> list[list[ItemPrediction]]:
    """Return the predictions at the positions of each item; an item with one class has one."""
    if top_k < 1:
        raise ZooError(f"top_k is {top_k}, but must be at least 1")
    preprocessors = build_preprocessors(model, registry=registry)
    batch = prediction_batch(model, preprocessors, inputs)
    with evaluation_mode(model):
        outputs: Outputs = model(batch)  # logits [B, T, C]
    shown = outputs.mask & ~_added_positions(model, preprocessors, batch, outputs.mask)
    return [
        to_predictions(model, logits[mask], preprocessors.get(TARGET), top_k)
        for logits, mask in zip(outputs.logits, shown, strict=True)
    ]


def to_predictions(
    model: Model, logits: Tensor, names: Preprocessor | None, top_k: int = 1
) -> list[ItemPrediction]:
    """Return the predictions of rows of logits [T, C]; `names` decodes classes."""
    schema = model.output_schema()
    assert schema is not None
    return _BY_TARGETS[schema.targets](logits, top_k, names)


def prediction_batch(
    model: Model, preprocessors: Mapping[str, Preprocessor], inputs: Sequence[Any]
) -> dict[str, Tensor]:
    """Return the batch of raw values, with zeros as targets if the model takes targets."""
    batch = encode_inputs(model, preprocessors, _to_examples(model, preprocessors, inputs))
    schema = model.batch_schema() or {}
    is_missing = TARGET not in batch and TARGET in schema
    return add_zeros(schema, batch, [TARGET]) if is_missing else batch


def _hint(model: Model) -> str:
    """Return what to do with a model whose classes cannot be predicted."""
    if can_predict(model, "position"):
        return "; use zoo.predict_positions"
    schema = model.output_schema()
    if hasattr(model, "embed"):
        return "; it computes a vector of each input: zoo.embed(model, inputs) in Python"
    if schema is not None and schema.logits == "feature":
        return "; it gives features: call it with a batch, its outputs have them as 'logits'"
    if schema is not None and schema.decoding:
        return "; generate with it: zoo generate"
    return ""


def _added_positions(
    model: Model,
    preprocessors: Mapping[str, Preprocessor],
    batch: Mapping[str, Tensor],
    mask: Tensor,
) -> Tensor:
    """Return a mask [B, S] of the tokens that the tokenizer adds to a text, such as "[CLS]"."""
    source, tokenizer = preprocessors.get(SOURCE), get_tokenizer(model, SOURCE)
    is_text = source is not None and source.content == "text"
    if tokenizer is None or not (is_text and can_predict(model, "position")):
        return torch.zeros_like(mask)
    added = torch.tensor(sorted(tokenizer.added_ids), dtype=torch.long, device=mask.device)
    return torch.isin(batch[SOURCE], added)


def _class_predictions(
    logits: Tensor, top_k: int, names: Preprocessor | None
) -> list[ItemPrediction]:
    """Return the predictions of rows of logits [T, C]."""
    return [
        Prediction(*top[0], top) for top in _most_likely(logits.float().softmax(-1), top_k, names)
    ]


def _label_predictions(
    logits: Tensor, top_k: int, names: Preprocessor | None
) -> list[ItemPrediction]:
    found: list[ItemPrediction] = []
    for top in _most_likely(logits.float().sigmoid(), logits.shape[-1], names):
        labels = [label for label, probability in top if probability > 0.5]
        found.append(LabelsPrediction(labels, top[: max(top_k, len(labels))]))
    return found


def _value_predictions(
    logits: Tensor, top_k: int, names: Preprocessor | None
) -> list[ItemPrediction]:
    return [ValuesPrediction(row) for row in logits.float().tolist()]


_BY_TARGETS: dict[str, Callable[[Tensor, int, Preprocessor | None], list[ItemPrediction]]] = {
    "class": _class_predictions,
    "multi-label": _label_predictions,
    "value": _value_predictions,
}
"""By kind of the targets: the predictions of rows of logits [T, C]."""


def _most_likely(
    probabilities: Tensor, top_k: int, names: Preprocessor | None
) -> list[list[tuple[str, float]]]:
    """Return the most likely classes of rows of probabilities [T, C], with their probabilities."""
    values, classes = probabilities.sort(dim=-1, descending=True, stable=True)
    found = []
    for row, ids in zip(values[:, :top_k].tolist(), classes[:, :top_k].tolist(), strict=True):
        labels = [str(number) if names is None else names.decode([number]) for number in ids]
        found.append(list(zip(labels, row, strict=True)))
    return found


def input_keys(model: Model, preprocessors: Mapping[str, Preprocessor]) -> list[str]:
    """Return the keys of the batch that an input has, without those that are made from others."""
    schema = model.batch_schema(inference=True) or {}
    derived = {o for k, each in preprocessors.items() for o in each.outputs(k) if o != k}
    return [k for k, field in schema.items() if not field.optional and k not in derived]


def _to_examples(
    model: Model, preprocessors: Mapping[str, Preprocessor], inputs: Sequence[Any]
) -> list[Mapping[str, Any]]:
    keys = input_keys(model, preprocessors)
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
