"""Names of classes in configs: ``id2label``, ``num_labels`` and ``problem_type``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zoo_huggingface.config_fields import config_error, get_mapping, get_path, get_value

_MULTI_LABEL, _REGRESSION = "multi_label_classification", "regression"
_PROBLEM_TYPES = (None, "single_label_classification", _MULTI_LABEL, _REGRESSION)


def is_regression(config: Mapping[str, Any]) -> bool:
    """Return whether a sequence classifier predicts numbers."""
    problem = config.get("problem_type")
    if problem not in _PROBLEM_TYPES:
        supported = ", ".join(str(name) for name in _PROBLEM_TYPES[1:])
        raise config_error("problem_type", problem, f"supported values: {supported}")
    return problem == _REGRESSION


def read_labels(config: Mapping[str, Any]) -> list[str]:
    """Return the names of the classes, in the order of their IDs.

    Of classes with the same name, as two of ImageNet, the later ones have their ID in the name.
    """
    labels = get_mapping(config, "id2label")
    count = get_value(config, "num_labels", int, len(labels) or 2)
    if not labels:
        return [f"LABEL_{i}" for i in range(count)]
    if len(labels) != count:
        raise config_error("num_labels", count, f"but 'id2label' has {len(labels)} labels")
    by_id = {str(key): name for key, name in labels.items()}
    names = [by_id.get(str(i)) for i in range(count)]
    if not all(isinstance(name, str | int) for name in names):
        raise config_error("id2label", labels, f"it should name the classes 0 to {count - 1}")
    texts = [str(name) for name in names]
    first = {name: i for i, name in reversed(list(enumerate(texts)))}
    return [name if first[name] == i else f"{name} ({i})" for i, name in enumerate(texts)]


def is_multi_label(config: Mapping[str, Any]) -> bool:
    """Return whether a sequence classifier computes an independent probability of each label.

    A single label has a sigmoid probability too, as in pipelines of transformers.
    """
    if is_regression(config):
        return False
    return config.get("problem_type") == _MULTI_LABEL or len(read_labels(config)) == 1


def write_labels(config: dict[str, Any], spec: Mapping[str, Any], count: int) -> None:
    """Set the names of the classes: those of the spec, of the imported config, or numbers."""
    names = get_path(spec, "preprocessing.target.classes")
    if not isinstance(names, list) or len(names) != count:
        known = get_mapping(config, "id2label")
        names = read_labels(config) if len(known) == count else [f"LABEL_{i}" for i in range(count)]
    if len(get_mapping(config, "id2label")) == count and read_labels(config) == names:
        return
    config.pop("num_labels", None)
    config["id2label"] = {str(i): str(name) for i, name in enumerate(names)}
    config["label2id"] = {str(name): i for i, name in enumerate(names)}


def write_problem_type(config: dict[str, Any], *, multi_label: bool, regression: bool) -> None:
    """Set the problem type, unless the imported config means the same."""
    if (is_multi_label(config), is_regression(config)) != (multi_label, regression):
        classes = _MULTI_LABEL if multi_label else "single_label_classification"
        config["problem_type"] = _REGRESSION if regression else classes
