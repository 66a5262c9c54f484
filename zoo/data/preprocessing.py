"""The preprocessors of a model."""

from __future__ import annotations

from zoo.errors import SpecError, ZooError
from zoo.interfaces import Model, Preprocessor
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.data_contract import build_preprocessor
from zoo.spec.document import document_from_data
from zoo.spec.providers import require_installed
from zoo.spec.reader import SpecReader


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
