"""The dataset that a model is evaluated on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoo.data.first_examples import FirstExamples
from zoo.errors import RegistryError, SpecError, ZooError
from zoo.interfaces import Dataset, Model, Preprocessor
from zoo.interfaces.signature import parameters
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.data_contract import dataset_problems
from zoo.spec.document import document_from_data
from zoo.spec.merging import merge
from zoo.spec.reader import SpecReader

PARTS = ("test", "validation", "data")
"""The datasets of the section ``train``, in the order in which they are looked for."""
_RUN_FILES = ("log.jsonl", "spec.yaml")
"""Files that `zoo.train` writes next to a model."""


def is_training_run(source: str | os.PathLike[str]) -> bool:
    """Return whether a model is in the local folder of a training run, or is a checkpoint of it."""
    path = Path(source)
    folder = path if path.is_dir() else path.parent
    if folder.parent.name == "checkpoints":
        folder = folder.parent.parent
    return path.exists() and all((folder / name).is_file() for name in _RUN_FILES)


def find_dataset(
    train: Mapping[str, Any],
    part: str | None,
    data: Mapping[str, Any] | None,
    registry: ComponentRegistry,
    *,
    own_run: bool = True,
) -> Blueprint[Dataset]:
    """Return the dataset of a part of the section ``train``, with other parameters.

    Args:
        train: the section ``train`` that the model was trained with; empty if it is not known.
        part: "test", "validation" or "data"; default: the first of "test" and "validation".
        data: parameters to set; with another ``type``, they replace the dataset. The other
            parameters of the same type are kept. Parameters that a split does not have are those
            of its data, which is then not split.
        own_run: whether the model is in the folder of a training run. The section ``train`` of
            other models names files that their authors chose, so it is used only with ``part``.
    """
    if part is not None and part not in PARTS:
        raise ZooError(f"part is '{part}'; expected one of {', '.join(PARTS)}")
    known = [name for name in PARTS if train.get(name)]
    if part is not None and part not in known:
        found = f"it has {', '.join(known)}" if known else "its training data is not known"
        raise ZooError(f"the model was not trained with a dataset '{part}': {found}")
    named = [name for name in known if name != "data"] if own_run else []
    name = part or next(iter(named), None)
    base = _given_dataset(train[name] if name else {}, data or {}, registry)
    given = _with_reference(data or {}, base, registry)
    merged = merge(document_from_data(base), document_from_data(given)).data
    if not merged or (isinstance(merged, dict) and "type" not in merged):
        types = sorted({entry.name for entry in registry.components("dataset")})
        reason = "has no test or validation data" if known else "was not trained with 'zoo train'"
        if known and not own_run:
            reason = "is not in the folder of a training run, so the files in its provenance are "
            reason += f"read only with --part (it has {', '.join(known)})"
        raise ZooError(
            f"there is no dataset to evaluate on: the model {reason}; pass one, such as "
            f"{'--part data (the training data) or ' if known else ''}"
            "--data type=parallel-text --data source=test.en --data target=test.de, in Python "
            "data={'type': ...} (datasets: " + ", ".join(types) + ")"
        )
    reader = SpecReader(document_from_data({"data": merged}), registry)
    blueprint = reader.part(Dataset, merged, ("data",))
    if blueprint is None or reader.problems:
        raise SpecError(reader.problems)
    return blueprint


def _given_dataset(
    base: Mapping[str, Any], data: Mapping[str, Any], registry: ComponentRegistry
) -> Mapping[str, Any]:
    """Return the dataset whose parameters are set: that of a dataset such as a split, if they are
    not parameters of the split. So another file of a held-out part is evaluated as a whole."""
    while "type" not in data and isinstance(base.get("data"), Mapping):
        try:
            entry = registry.get(Dataset.kind, str(base["type"]))
        except RegistryError:  # reported when the dataset is built
            break
        if data.keys() <= {parameter.name for parameter in parameters(entry.cls)}:
            break
        base = base["data"]
    return base


def _with_reference(
    data: Mapping[str, Any], base: Mapping[str, Any], registry: ComponentRegistry
) -> dict[str, Any]:
    """Return parameters with the reference of the dataset as ``type``, such as "datasets:stories",
    if they name the same type by its name."""
    types = [each.get("type") for each in (data, base)]
    try:
        named, known = (registry.get(Dataset.kind, str(each)).reference for each in types)
    except RegistryError:  # reported when the dataset is built
        return dict(data)
    return {**data, "type": types[1]} if named == known else dict(data)


def limit_examples(blueprint: Blueprint[Dataset], max_examples: int | None) -> Blueprint[Dataset]:
    """Return a dataset with at most ``max_examples`` examples."""
    if max_examples is None:
        return blueprint
    if max_examples < 1:
        raise ZooError(f"max_examples is {max_examples}; it must be at least 1")
    return Blueprint.of(FirstExamples, dataset=blueprint, count=max_examples)


def check_dataset(
    blueprint: Blueprint[Dataset],
    model: Model,
    preprocessors: Mapping[str, Preprocessor],
    registry: ComponentRegistry,
) -> None:
    """Raise SpecError if a dataset and the preprocessors do not make the batch of a model."""
    schema = model.batch_schema()
    if schema is None:
        raise ZooError(f"model '{model.name}' does not declare its batch, so it has no batches")
    classes = {key: type(item) for key, item in preprocessors.items()}
    made = {key: item.outputs(key) for key, item in preprocessors.items()}
    dataset = blueprint.build()
    problems = list(dataset_problems(blueprint, dataset, schema, classes, made, registry))
    if problems:
        raise SpecError(problems)
