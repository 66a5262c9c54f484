"""Import and export of adapters as folders of peft."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zoo.adapters import ADAPTERS, adapted_modules, find_adapters
from zoo.artifact import Header, named_tensors, read_header
from zoo.artifact.checkpoint import open_tensors
from zoo.artifact.probe import NotRunnable, record_probe
from zoo.errors import ZooError, ZooWarning
from zoo.hub.adapters import save_adapter
from zoo.hub.models import find, load
from zoo.interfaces import Adapter, Model
from zoo.interfaces.adapter_exchange import LayerTensors
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.adaptation import add_adapters
from zoo_exchange.adapter_folder import (
    CONFIG,
    Layers,
    flat_names,
    read_adapter_config,
    read_adapter_tensors,
    write_folder,
)
from zoo_exchange.export_plan import find_exporter
from zoo_exchange.import_plan import wrap_importer_errors
from zoo_exchange.mapping import TensorMap, plan_tensors, read_map
from zoo_exchange.peft_task import describe_base, saved_head, unused_prefix
from zoo_exchange.weight_converter import PlanConverter

FORMAT = "peft"
"""The format of the folders, and the name of an imported adapter in its model."""
_WHOLE = f"{FORMAT}_modules"
"""The name of the adapter of imported whole modules."""
_WHOLE_KEY = "modules_to_save"
Source = str | os.PathLike[str]


def import_adapter(
    folder: Source, output: Source, *, base: Source, registry: ComponentRegistry | None = None
) -> Path:
    """Import an adapter of peft and write it to a file without its base.

    Whole modules in the folder (``modules_to_save``) become an adapter of the file, too, so that
    the base is restored if both are switched off.

    Args:
        folder: has ``adapter_config.json`` and ``adapter_model.safetensors``.
        base: the model that the adapter was trained on, imported from the same library.

    Raises:
        ZooError: for an adapter or an option that is not supported, with its name, or a base that
            does not have the modules.
    """
    registry = registry or default_registry()
    config = read_adapter_config(Path(folder))
    cls = _find_adapter(config, registry)
    cls.check_peft(config)
    model = load(base, registry=registry)
    converter = _importing_converter(read_header(find(base)), model, registry)
    layers, whole = read_adapter_tensors(Path(folder), converter.sources)
    if whole:
        copies = _find_adapter({_WHOLE_KEY: sorted(whole)}, registry)
        _add_copies(model, copies, converter.whole(flat_names(whole)), registry)
    params, tensors = cls.from_peft(config, layers, converter)
    data = {"type": cls.name, **params, "targets": _targets(params, tensors)}
    add_adapters(model, {FORMAT: data}, registry=registry)
    _copy_tensors(find_adapters(model)[FORMAT], tensors)
    provenance = {"imported": Path(folder).name, "format": FORMAT, "config": config}
    return save_adapter(model, output, base=base, provenance=provenance)


@torch.no_grad()
def _add_copies(
    model: Model, cls: type[Adapter], tensors: Mapping[str, Tensor], registry: ComponentRegistry
) -> None:
    """Add an adapter that copies modules, with these values of the tensors of the model.

    Tensors of modules that cannot be copied, or that are not called, replace those of the model.
    """
    own = named_tensors(model)
    paths = {name: name.rpartition(".")[0] for name in tensors}
    called, adapter = _called_modules(model), cls(targets=sorted(set(paths.values())))
    copied = {
        path
        for path in paths.values()
        if (called is None or path in called) and adapter.supports(model.get_submodule(path))
    }
    others = [name for name, path in paths.items() if path not in copied]
    if others:
        warnings.warn(
            f"{', '.join(others)}: switching the adapter off does not restore these weights, which "
            "are not those of a layer that is called",
            ZooWarning,
            stacklevel=3,
        )
    before = {name: own[name].clone() for name, path in paths.items() if path in copied}
    for name, tensor in tensors.items():
        _copy_tensor(own[name], tensor, name)
    if copied:
        data = {"type": cls.name, "targets": sorted(copied)}
        add_adapters(model, {_WHOLE: data}, registry=registry)
    for name, tensor in before.items():
        own[name].copy_(tensor)


def _called_modules(model: Model) -> set[str] | None:
    """Return the paths of the modules that are called on an example; None if it does not run."""
    called: set[str] = set()
    handles = [
        module.register_forward_hook(lambda *_, path=path: called.add(path))
        for path, module in model.named_modules()
    ]
    try:
        return None if "skipped" in record_probe(model) else called
    except NotRunnable:
        return None
    finally:
        for handle in handles:
            handle.remove()


def export_adapter(
    source: Source,
    folder: Source,
    *,
    base: Source | None = None,
    registry: ComponentRegistry | None = None,
) -> Path:
    """Write the adapters of a file as a folder of peft; the base must be an imported model.

    Args:
        base: the base, if it is not at the place that the file names.

    Raises:
        ZooError: if an adapter has no counterpart in peft, or its modules are one tensor in the
            other library that cannot be adapted exactly.
    """
    registry = registry or default_registry()
    header = read_header(find(source))
    if header.base is None:
        raise ZooError(f"{source} has no base; an adapter is saved with zoo.save_adapter")
    model = load(source, base=base, registry=registry)
    assert model.base is not None
    original = read_header(model.base)
    described = describe_base(model, _original_config(original, registry), original.provenance)
    converter = _exporting_converter(original, model, registry)
    converter = replace(converter, prefix=unused_prefix(converter.plan.targets, described))
    config, layers = _export_adapters(model, converter)
    if "peft_type" not in config:
        raise ZooError(f"{source} has no adapter with a counterpart in peft")
    whole = {name for name in header.tensors if not name.startswith(f"{ADAPTERS}.")}
    for job in converter.plan.jobs:
        if any(saved_head(name, described) for name in job.targets):
            whole.update(job.sources)
    own = named_tensors(model)
    saved = set(config.get("modules_to_save", ()))
    for name, tensor in converter.whole({name: own[name].detach() for name in whole}).items():
        module, _, key = name.rpartition(".")
        layers.setdefault(module, {})[key] = tensor
        saved.add(saved_head(name, described) or module)
    config |= {
        **described,
        "modules_to_save": sorted(saved) or None,
        "fan_in_fan_out": bool(converter.transposed),
        "inference_mode": True,
    }
    write_folder(Path(folder), config, layers)
    return Path(folder)


def _export_adapters(model: Model, converter: PlanConverter) -> tuple[dict[str, Any], Layers]:
    """Return the config and the tensors of all adapters of a model."""
    config: dict[str, Any] = {}
    layers: Layers = {}
    for adapter in find_adapters(model).values():
        own = {path: _own_tensors(layer) for path, _, layer in adapted_modules(model, adapter)}
        added, found = adapter.to_peft(own, converter)
        if config.keys() & added.keys():
            raise ZooError("a folder of peft has one adapter; save and export them one by one")
        config |= added
        for module, tensors in found.items():
            layers.setdefault(module, {}).update(tensors)
    return config, layers


def _find_adapter(config: Mapping[str, Any], registry: ComponentRegistry) -> type[Adapter]:
    for entry in registry.components(Adapter.kind):
        cls = entry.cls
        assert issubclass(cls, Adapter)
        if cls.matches_peft(config):
            return cls
    raise ZooError(f"{CONFIG}: peft_type {config.get('peft_type')!r} is not supported")


def _exporting_converter(
    header: Header, model: Model, registry: ComponentRegistry
) -> PlanConverter:
    """Return the converter to the library from which a model was imported."""
    ours = open_tensors([header.path.parent / name for name, _ in header.files]).metas
    plan = plan_tensors(_read_map(header, registry).inverse(), ours, None)
    return PlanConverter(plan, ours, _tables(model), to_zoo=False)


def _importing_converter(
    header: Header, model: Model, registry: ComponentRegistry
) -> PlanConverter:
    """Return the converter from the library from which a model was imported."""
    inverse = _exporting_converter(header, model, registry)
    theirs = inverse.plan.targets
    plan = plan_tensors(_read_map(header, registry), theirs, inverse.sources)
    return PlanConverter(plan, theirs, inverse.tables, to_zoo=True)


def _read_map(header: Header, registry: ComponentRegistry) -> TensorMap:
    """Return the map with which a model was imported."""
    importer = find_exporter(header, None, registry)
    config = _original_config(header, registry)
    with wrap_importer_errors(importer):
        return read_map(importer.map(config), spec=header.spec)


def _original_config(header: Header, registry: ComponentRegistry) -> dict[str, Any]:
    """Return the config of a model in the library from which it was imported."""
    if header.provenance.get("importer") is None:
        raise ZooError(
            f"{header.path} was not imported from another library, so its adapters have no "
            "counterpart in peft"
        )
    importer = find_exporter(header, None, registry)
    original = header.provenance.get("config")
    with wrap_importer_errors(importer):
        return importer.config(header.spec, original if isinstance(original, dict) else {})


def _tables(model: nn.Module) -> frozenset[str]:
    return frozenset(n for n, module in model.named_modules() if isinstance(module, nn.Embedding))


def _targets(params: Mapping[str, Any], tensors: LayerTensors) -> list[str]:
    """Return the targets of an imported adapter: its modules, except those another key lists."""
    listed = {path for value in params.values() if isinstance(value, list) for path in value}
    return [path for path in tensors if path not in listed] or list(tensors)


def _own_tensors(layer: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in layer.named_parameters()}


@torch.no_grad()
def _copy_tensors(adapter: Adapter, tensors: LayerTensors) -> None:
    for path, each in tensors.items():
        own = dict(adapter.layers.get_submodule(path).named_parameters())
        for name, tensor in each.items():
            _copy_tensor(own[name], tensor, f"{path}: {name}")


def _copy_tensor(target: Tensor, tensor: Tensor, name: str) -> None:
    if target.shape != tensor.shape:
        found, expected = list(tensor.shape), list(target.shape)
        raise ZooError(f"{name} has the shape {found}, expected {expected}")
    target.copy_(tensor)
