"""Adds adapters to a model that is already built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zoo.acceleration import accelerate, is_accelerated
from zoo.adapters import attach, reset_adapters
from zoo.errors import SpecError, ZooError
from zoo.interfaces import Adapter, Model
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.document import document_from_data
from zoo.spec.providers import describe_provider, reference
from zoo.spec.reader import SpecReader


def add_adapters(
    model: Model,
    adapters: Mapping[str, Any],
    *,
    seed: int = 0,
    registry: ComponentRegistry | None = None,
) -> None:
    """Add adapters, given by name as in the section ``adapters`` of a spec, to a model.

    Raises:
        SpecError: if an adapter is not valid, or a pattern matches no module.
    """
    if not isinstance(model, Model):
        raise ZooError(f"adapters are added to a zoo.Model, not to a {type(model).__name__}")
    registry = registry or default_registry()
    data = {"adapters": dict(adapters)}
    reader = SpecReader(document_from_data(data), registry)
    parts = {
        name: reader.part(Adapter, value, ("adapters", name)) for name, value in adapters.items()
    }
    if reader.problems:
        raise SpecError(reader.problems)
    accelerated = any(is_accelerated(module) for module in model.modules())
    if accelerated:
        accelerate(model, enabled=False, registry=registry)
    for name, blueprint in parts.items():
        assert blueprint is not None
        with blueprint.report_errors("attaching the adapter"):
            attach(model, name, blueprint.build())
    reset_adapters(model, seed, names=parts)
    if accelerated:
        accelerate(model, enabled=True, registry=registry)
    if model.spec is not None:
        _add_metadata(model, {name: part for name, part in parts.items() if part is not None})


def _add_metadata(model: Model, parts: Mapping[str, Any]) -> None:
    """Add the section to the spec of a model, and the components to their lists."""
    assert model.spec is not None
    section = {name: part.resolve() for name, part in parts.items()}
    model.spec = {**model.spec, "adapters": {**model.spec.get("adapters", {}), **section}}
    entries = [part.entry for part in parts.values() if part.entry]
    known = {(row["kind"], reference(row)): row for row in model.providers}
    known |= {(entry.kind, entry.reference): describe_provider(entry) for entry in entries}
    model.providers = tuple(known[key] for key in sorted(known))
    model.component_paths += tuple(
        {
            "path": f"adapters.{name}",
            "kind": part.entry.kind,
            "type": part.entry.reference,
            "at": [f"adapters.{name}"],
        }
        for name, part in parts.items()
        if part.entry
    )
    model.component_entries = tuple(dict.fromkeys((*model.component_entries, *entries)))
