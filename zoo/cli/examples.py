"""The examples of a dataset as inputs of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zoo.interfaces import Examples, Model


def open_examples(source: str, data: dict[str, Any], part: str | None = None) -> Examples:
    """Return the examples of a dataset, or of a part of the training run of a model."""
    from zoo.evaluation.datasets import find_dataset, is_training_run
    from zoo.evaluation.evaluating import training_section
    from zoo.hub.models import read_header
    from zoo.registry.component_registry import default_registry

    train = training_section(read_header(source).provenance)
    own_run = is_training_run(source)
    dataset = find_dataset(train, part, data, default_registry(), own_run=own_run)
    return dataset.build().open(evaluation=True)


def example_inputs(model: Model, example: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an example that a model needs."""
    schema = model.batch_schema(inference=True) or {}
    keys = [key for key, field in schema.items() if not field.optional]
    return {key: example[key] for key in keys if key in example}
