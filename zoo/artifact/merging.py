"""Merges the adapters of a model into its weights, and compares the outputs."""

from __future__ import annotations

from zoo.adapters import find_adapters
from zoo.adapters.merging import merge_layers
from zoo.artifact.migration import section_of
from zoo.artifact.probe import compare_probe, record_probe
from zoo.errors import ZooError
from zoo.interfaces import Model
from zoo.spec.providers import used_by

_SECTION = "adapters"


def merge_adapters(model: Model) -> Model:
    """Merge the adapters in use into the weights of a model, and remove all of its adapters.

    The model is changed in place and returned; its parameters require gradients again.

    Raises:
        ZooError: if the model has no adapter in use, an adapter cannot be merged, or the merged
            model computes other outputs, as with an embedding table that is also the output layer,
            or DoRA of a module that another adapter changes. The model cannot be used then.
    """
    if not any(adapter.enabled for adapter in find_adapters(model).values()):
        raise ZooError("the model has no adapter in use, so there is nothing to merge")
    probe = record_probe(model)
    merge_layers(model)
    differences = [] if "skipped" in probe else compare_probe(model, probe)
    if differences:
        raise ZooError(
            f"the merged model computes other outputs ({differences[0]}); a module with an adapter "
            "is used in another way too, such as an embedding table as output layer, or two "
            "adapters of one module are not a change of its weights, such as dora and another one"
        )
    _remove_section(model)
    for parameter in model.parameters():
        parameter.requires_grad_(parameter.is_floating_point())
    return model


def _remove_section(model: Model) -> None:
    """Remove the adapters from the spec of a model."""
    if model.spec is None:
        return
    rows = used_by(model.spec.get(_SECTION), model.providers)
    model.spec = {key: value for key, value in model.spec.items() if key != _SECTION}
    others = used_by(model.spec, model.providers)
    model.providers = tuple(row for row in model.providers if row not in rows or row in others)
    model.component_paths = tuple(
        row for row in model.component_paths if section_of(row) != _SECTION
    )
    model.component_entries = tuple(e for e in model.component_entries if e.kind != "adapter")
