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


def node_names(examples: Examples, index: int) -> list[str] | None:
    """Return the names of the nodes of an example that is a graph, with their classes, such as
    "n3 · red"; None if the dataset has neither.

    A node without a name has its number, as in "3 · class 2".
    """
    names = examples.position_names(index)
    target: Any = examples[index].get("target")
    is_list = isinstance(target, list) or getattr(target, "ndim", 0) == 1
    if not is_list:
        return None if names is None else list(names)
    names = names or [str(number) for number in range(len(target))]
    return [_node_name(*pair) for pair in zip(names, target, strict=True)]


def _node_name(name: str, label: Any) -> str:
    """Return a name with a class: a text, empty without one, or an ID, -1 without one."""
    if isinstance(label, str):
        return f"{name} · {label}" if label not in ("", name) else name
    return f"{name} · class {label}" if label >= 0 else name
