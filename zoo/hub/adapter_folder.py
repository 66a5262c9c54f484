"""Import and export of adapters as folders of peft."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zoo.adapters import ADAPTERS, adapted_modules, find_adapters
from zoo.artifact import Header, named_tensors, read_header
from zoo.artifact.checkpoint import open_tensors, write_tensors
from zoo.errors import ArtifactError, ZooError
from zoo.exchange.export_plan import find_exporter
from zoo.exchange.import_plan import wrap_importer_errors
from zoo.exchange.mapping import TensorMap, TensorPlan, plan_tensors, read_map
from zoo.exchange.source_files import read_json
from zoo.exchange.weight_converter import PlanConverter
from zoo.files import os_error_message, staging_dir
from zoo.hub.adapters import save_adapter
from zoo.hub.models import find, find_base, load
from zoo.interfaces import Adapter
from zoo.interfaces.tensors import TensorMeta
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.adaptation import add_adapters

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."
_NAME = "peft"
"""The name of an imported adapter in the model."""


def is_adapter_folder(source: str | os.PathLike[str]) -> bool:
    """Return whether a path is a folder with an adapter of peft."""
    return os.path.isfile(Path(source) / CONFIG)


def import_adapter(
    folder: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    base: str | os.PathLike[str],
    registry: ComponentRegistry | None = None,
) -> Path:
    """Import an adapter of peft and write it to a file without its base.

    Args:
        folder: has ``adapter_config.json`` and ``adapter_model.safetensors``.
        base: the model that the adapter was trained on, imported from the same library.

    Raises:
        ZooError: for an adapter or an option that is not supported, with its name, or a base that
            does not have the modules.
    """
    registry = registry or default_registry()
    config, stored = read_json(Path(folder) / CONFIG), open_tensors([Path(folder) / WEIGHTS])
    if not isinstance(config, dict):
        raise ZooError(f"{Path(folder) / CONFIG} should contain a JSON object")
    cls = _find_adapter(config, registry)
    model = load(base, registry=registry)
    plan, theirs = _import_plan(read_header(find(base)), registry)
    converter = PlanConverter(plan, theirs, _tables(model), to_zoo=True)
    layers, saved = _read_layers(stored.metas, stored.read, theirs, config)
    params, tensors = cls.from_peft(config, layers, converter)
    own = named_tensors(model)
    with torch.no_grad():
        for name, tensor in converter.whole(saved).items():
            own[name].copy_(tensor)
    add_adapters(model, {_NAME: {"type": cls.name, **params, **_targets(params, tensors)}})
    _copy_tensors(find_adapters(model)[_NAME], tensors)
    provenance = {"imported": Path(folder).name, "format": _NAME, "config": config}
    return save_adapter(model, output, base=base, provenance=provenance)


def export_adapter(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    registry: ComponentRegistry | None = None,
) -> Path:
    """Write the adapters of a file as a folder of peft; the base must be an imported model.

    Raises:
        ZooError: if an adapter has no counterpart in peft, or its modules are one tensor in the
            other library that cannot be adapted exactly.
    """
    registry = registry or default_registry()
    path = find(source)
    header = read_header(path)
    if header.base is None:
        raise ZooError(f"{source} has no base; an adapter is saved with zoo.save_adapter")
    base = header.path.parent / header.base["name"]
    base = base if base.exists() else find_base(header.base["name"], header.base["revision"])
    model = load(path, registry=registry)
    base_header = read_header(base)
    plan, ours = _export_plan(base_header, registry)
    converter = PlanConverter(plan, ours, _tables(model), to_zoo=False)
    config: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    for adapter in find_adapters(model).values():
        layers = {p: _own_tensors(layer) for p, _, layer in adapted_modules(model, adapter)}
        added, found = adapter.to_peft(layers, converter)
        clash = sorted(key for key in added if key in config)
        if clash:
            raise ZooError("peft has one adapter per folder; export the adapters one by one")
        config |= added
        tensors |= {f"{_PREFIX}{m}.{n}": t for m, each in found.items() for n, t in each.items()}
    stored = {name for name in header.tensors if not name.startswith(f"{ADAPTERS}.")}
    changed = converter.whole({name: named_tensors(model)[name].detach() for name in stored})
    saved = {name.rpartition(".")[0] for name in changed} | set(config.get("modules_to_save", ()))
    tensors |= {f"{_PREFIX}{name}": tensor for name, tensor in changed.items()}
    if "peft_type" not in config:
        raise ZooError(f"{source} has no adapter with a counterpart in peft")
    config |= {
        "base_model_name_or_path": base_header.provenance.get("imported"),
        "modules_to_save": sorted(saved) or None,
        "fan_in_fan_out": bool(converter.transposed),
        "inference_mode": True,
    }
    _write_folder(Path(folder), config, tensors)
    return Path(folder)


def _find_adapter(config: Mapping[str, Any], registry: ComponentRegistry) -> type[Adapter]:
    classes: list[Any] = [entry.cls for entry in registry.components(Adapter.kind)]
    for cls in classes:
        if cls.matches_peft(config):
            return cls  # type: ignore[no-any-return]
    raise ZooError(f"{CONFIG}: peft_type {config.get('peft_type')!r} is not supported")


def _export_plan(
    header: Header, registry: ComponentRegistry
) -> tuple[TensorPlan, dict[str, TensorMeta]]:
    """Return the plan from our tensors to those of the library a model was imported from."""
    ours = dict(open_tensors([header.path.parent / name for name, _ in header.files]).metas)
    return plan_tensors(_read_map(header, registry).inverse(), ours, None), ours


def _import_plan(
    header: Header, registry: ComponentRegistry
) -> tuple[TensorPlan, dict[str, TensorMeta]]:
    """Return the plan to our tensors, and shape and dtype of the other library's tensors."""
    inverse, ours = _export_plan(header, registry)
    return plan_tensors(_read_map(header, registry), inverse.targets, ours), inverse.targets


def _read_map(header: Header, registry: ComponentRegistry) -> TensorMap:
    """Return the map with which a model was imported."""
    importer = find_exporter(header, None, registry)
    original = header.provenance.get("config")
    with wrap_importer_errors(importer):
        config = importer.config(header.spec, original if isinstance(original, dict) else {})
        return read_map(importer.map(config), spec=header.spec)


def _tables(model: nn.Module) -> frozenset[str]:
    return frozenset(n for n, module in model.named_modules() if isinstance(module, nn.Embedding))


def _read_layers(
    metas: Mapping[str, TensorMeta],
    read: Any,
    theirs: Mapping[str, TensorMeta],
    config: Mapping[str, Any],
) -> tuple[dict[str, dict[str, Tensor]], dict[str, Tensor]]:
    """Return the tensors of each adapted module, and those of whole modules, with the names of the
    base."""
    modules = {name.rpartition(".")[0] for name in theirs}
    layers: dict[str, dict[str, Tensor]] = {}
    saved: dict[str, Tensor] = {}
    for name in metas:
        inner = name.removeprefix(_PREFIX)
        whole = _base_name(inner, theirs)
        if whole is not None:
            saved[whole] = read(name)
            continue
        parts = inner.split(".")
        for count in range(len(parts) - 1, 0, -1):
            module = _base_name(".".join(parts[:count]), modules)
            if module is not None:
                layers.setdefault(module, {})[".".join(parts[count:])] = read(name)
                break
        else:
            raise ZooError(f"the base has no module of '{inner}'")
    return layers, saved


def _base_name(name: str, known: Any) -> str | None:
    """Return the name in the base: the same, or one that differs by a prefix such as ``bert.``."""
    if name in known:
        return name
    found = [other for other in known if other.endswith(f".{name}") or name.endswith(f".{other}")]
    return found[0] if len(found) == 1 else None


def _targets(
    params: Mapping[str, Any], tensors: Mapping[str, Mapping[str, Tensor]]
) -> dict[str, Any]:
    """Return the targets of an imported adapter: its modules, except those another key lists."""
    listed = {path for value in params.values() if isinstance(value, list) for path in value}
    return {"targets": [path for path in tensors if path not in listed] or list(tensors)}


def _own_tensors(layer: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in layer.named_parameters()}


@torch.no_grad()
def _copy_tensors(adapter: Adapter, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
    for path, each in tensors.items():
        own = dict(adapter.layers.get_submodule(path).named_parameters())
        for name, tensor in each.items():
            if own[name].shape != tensor.shape:
                raise ZooError(
                    f"{path}: {name} has the shape {list(tensor.shape)}, expected "
                    f"{list(own[name].shape)}"
                )
            own[name].copy_(tensor)


def _write_folder(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    target = Path(os.path.realpath(folder))
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
        raise ArtifactError(f"{folder} already exists and is not an empty folder; choose another")
    metas = {name: TensorMeta.of(tensor) for name, tensor in tensors.items()}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with staging_dir(target) as staging:
            (staging / "new").mkdir()
            whole = ((name, tensor.contiguous()) for name, tensor in tensors.items())
            write_tensors(staging / "new" / WEIGHTS, metas, whole)
            text = json.dumps(dict(sorted(config.items())), indent=2, ensure_ascii=False)
            (staging / "new" / CONFIG).write_text(text + "\n", encoding="utf-8")
            os.replace(staging / "new", target)
    except OSError as error:
        raise ArtifactError(f"{folder} could not be written: {os_error_message(error)}") from error
