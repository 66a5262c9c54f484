"""The preprocessors of a model."""

from __future__ import annotations

from typing import Any

from zoo.data.reader import iterate_values
from zoo.data.tokenizer import attach_tokenizers
from zoo.errors import SpecError, ZooError
from zoo.interfaces import Model, Preprocessor
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.data_contract import build_preprocessor
from zoo.spec.document import document_from_data
from zoo.spec.providers import require_installed
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
    section = (model.spec or {}).get("preprocessing") or {}
    require_installed(section, model.providers)
    schema = model.batch_schema()
    if section and schema is None:
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
        found[key] = build_preprocessor(blueprint, key, schema or {}, label, stored)
    return found


def fit_preprocessors(
    spec: Spec, model: Model, *, registry: ComponentRegistry | None = None
) -> dict[str, Preprocessor]:
    """Fit the preprocessors of a spec to its training data, and attach them to the model.

    The fitted parameters are set in ``model.spec``, and stored texts in ``model.tokenizer``, so
    that `build_preprocessors` returns equal preprocessors for the saved model.

    Returns:
        The preprocessors by key of the batch.

    Raises:
        ZooError: if the model has no spec, or a tokenizer does not fit the model.
    """
    if not spec.sections.preprocessing:
        return {}
    if model.spec is None:
        raise ZooError(
            f"model '{model.name}' has no spec, which its preprocessors are saved in; compose it "
            "from registered components"
        )
    section = {key: dict(value) for key, value in model.spec["preprocessing"].items()}
    for key, params in fit_parameters(spec, model).items():
        section[key] |= params
    model.spec = {**model.spec, "preprocessing": section}
    found = build_preprocessors(model, registry=registry)
    texts = {key: item.stored() for key, item in found.items()}
    tokenizers = {key: text for key, text in texts.items() if text is not None}
    if tokenizers:
        attach_tokenizers(model, tokenizers)
    return found


def fit_parameters(spec: Spec, model: Model) -> dict[str, dict[str, Any]]:
    """Return the parameters that depend on the training data, by key of the batch."""
    schema = model.batch_schema() or {}
    built = {
        key: build_preprocessor(blueprint, key, schema, f"model '{model.name}'")
        for key, blueprint in spec.sections.preprocessing.items()
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
