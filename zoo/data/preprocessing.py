"""The preprocessors of a model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from zoo.data.reader import iterate_values
from zoo.data.tokenizer import attach_tokenizers
from zoo.errors import SpecError, ZooError, ZooWarning
from zoo.interfaces import Dataset, Model, Preprocessor
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.data_contract import build_preprocessor, infer_preprocessing
from zoo.spec.document import document_from_data
from zoo.spec.providers import describe_provider, reference, require_installed
from zoo.spec.reader import SpecReader
from zoo.spec.spec import Spec
from zoo.spec.training import Training


def build_preprocessors(
    model: Model, *, registry: ComponentRegistry | None = None
) -> dict[str, Preprocessor]:
    """Build the preprocessors in the spec of a model, with the texts stored in the model.

    Returns:
        The preprocessors by key of the batch; empty if the spec has none.

    Raises:
        ZooError: if the plugin of a preprocessor is not installed.
    """
    section = (model.spec or {}).get("preprocessing")
    if not section:
        return {}
    require_installed(section, model.providers)
    schema = model.batch_schema()
    if schema is None:
        raise ZooError(f"model '{model.name}' does not declare its batch, so it has no inputs")
    reader = SpecReader(
        document_from_data({"preprocessing": section}), registry or default_registry()
    )
    found: dict[str, Preprocessor] = {}
    for key, data in section.items():
        blueprint = reader.part(Preprocessor, data, ("preprocessing", key))
        if blueprint is None or reader.problems:
            raise SpecError(reader.problems)
        stored = (model.tokenizer or {}).get(key)
        label = f"model '{model.name}'"
        found[key] = build_preprocessor(blueprint, key, schema, label, stored)
    return found


def fit_preprocessors(
    spec: Spec, model: Model, *, registry: ComponentRegistry | None = None
) -> dict[str, Preprocessor]:
    """Fit the preprocessors of a spec to its training data, and attach them to the model.

    The fitted parameters are set in ``model.spec``, and stored texts in ``model.tokenizer``, so
    that `build_preprocessors` returns equal preprocessors for the saved model. Texts that the model
    has already are not read from files.

    Preprocessors that the spec does not name are those of the model, such as those of the base of
    its training; others are added if only one fits the field of the data.

    Returns:
        The preprocessors by key of the batch.

    Raises:
        ZooError: if the model has no spec, or a tokenizer does not fit the model.
    """
    registry = registry or default_registry()
    preprocessing = {**spec.sections.preprocessing, **infer_preprocessors(spec, model, registry)}
    if not preprocessing and not (model.spec or {}).get("preprocessing"):
        return {}
    if model.spec is None:
        raise ZooError(
            f"model '{model.name}' has no spec, which its preprocessors are saved in; compose it "
            "from registered components"
        )
    section = {key: dict(value) for key, value in model.spec["preprocessing"].items()}
    for key, blueprint in preprocessing.items():
        section.setdefault(key, blueprint.resolve())
    for key, params in fit_parameters(spec, model, preprocessing).items():
        section[key] |= params
    model.spec = {**model.spec, "preprocessing": section}
    _add_providers(model, preprocessing)
    found = build_preprocessors(model, registry=registry)
    texts = {key: item.stored() for key, item in found.items()}
    tokenizers = {key: text for key, text in texts.items() if text is not None}
    if tokenizers:
        # Tokenizers that the model has already are those that its weights were trained with.
        trained = tokenizers.items() <= (model.tokenizer or {}).items()
        attach_tokenizers(model, tokenizers, trained=trained)
    return found


def infer_preprocessors(
    spec: Spec, model: Model, registry: ComponentRegistry
) -> dict[str, Blueprint[Preprocessor]]:
    """Return the preprocessors that the spec does not name; see `infer_preprocessing`."""
    if spec.sections.train is None:
        return {}
    training: Training = spec.sections.train.build()
    fields = training.data.build().fields()
    known = {*spec.sections.preprocessing, *((model.spec or {}).get("preprocessing") or {})}
    return infer_preprocessing(fields, known, model.batch_schema() or {}, registry)


def _add_providers(model: Model, blueprints: Mapping[str, Blueprint[Preprocessor]]) -> None:
    """Add the preprocessors that the spec does not name to the components of the model."""
    entries = [each.entry for each in blueprints.values() if each.entry is not None]
    rows = {(row["kind"], reference(row)): row for row in model.providers}
    for entry in entries:
        rows.setdefault((entry.kind, entry.reference), describe_provider(entry))
    model.providers = tuple(rows[key] for key in sorted(rows))
    model.component_entries = tuple(dict.fromkeys((*model.component_entries, *entries)))


def infer_for_dataset(
    dataset: Dataset,
    model: Model,
    preprocessors: Mapping[str, Preprocessor],
    registry: ComponentRegistry,
) -> dict[str, Preprocessor]:
    """Return the preprocessors that a saved model does not have and a dataset needs, if only one
    fits. Names of classes are those of the dataset, with a warning."""
    schema = model.batch_schema() or {}
    found: dict[str, Preprocessor] = {}
    for key, blueprint in infer_preprocessing(
        dataset.fields(), preprocessors, schema, registry
    ).items():
        item = build_preprocessor(blueprint, key, schema, f"model '{model.name}'")
        params = item.fit(iterate_values(dataset.open(evaluation=True), key, skip=True))
        if params:
            warnings.warn(
                f"model '{model.name}' does not contain {' and '.join(params)} of '{key}'; those "
                "of the dataset are used",
                ZooWarning,
                stacklevel=2,
            )
        found[key] = build_preprocessor(
            replace(blueprint, params=params), key, schema, f"model '{model.name}'"
        )
    return found


def fit_parameters(
    spec: Spec, model: Model, preprocessing: Mapping[str, Blueprint[Preprocessor]]
) -> dict[str, dict[str, Any]]:
    """Return the parameters that depend on the training data, by key of the batch."""
    schema = model.batch_schema() or {}
    built = {
        key: build_preprocessor(blueprint, key, schema, f"model '{model.name}'")
        for key, blueprint in preprocessing.items()
    }
    fitting = [key for key, item in built.items() if type(item).fit is not Preprocessor.fit]
    if not fitting or spec.sections.train is None:
        return {}
    training: Training = spec.sections.train.build()
    dataset = training.data.build()
    examples = dataset.open()
    skip = training.bad_data == "skip"
    return {
        key: built[key].fit(iterate_values(examples, key, skip=skip))
        for key in fitting
        if key in dataset.fields()
    }
