"""Folders of adapters of peft: their files, and the names of tensors in them."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from zoo.artifact.checkpoint import open_tensors, write_tensors
from zoo.errors import ArtifactError, ZooError
from zoo.exchange.source_files import read_json
from zoo.files import os_error_message, staging_dir
from zoo.interfaces.tensors import TensorMeta

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
"""Begins the names of tensors."""
Layers = dict[str, dict[str, Tensor]]
"""The tensors of each adapted module, by the name of the module and their own."""


def is_adapter_folder(source: str | os.PathLike[str]) -> bool:
    """Return whether a path is a folder with an adapter of peft."""
    return os.path.isfile(Path(source) / CONFIG)


def read_adapter_config(folder: Path) -> dict[str, Any]:
    """Return the content of ``adapter_config.json``."""
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict):
        raise ZooError(f"{folder / CONFIG} should contain a JSON object")
    return config


def read_adapter_tensors(folder: Path, base: Collection[str]) -> tuple[Layers, Layers]:
    """Return the tensors of adapted modules, and those of whole modules.

    Args:
        base: the names of the tensors of the base; modules get the names that they have there.
    """
    stored = open_tensors([folder / WEIGHTS])
    modules = {name.rpartition(".")[0] for name in base}
    layers: Layers = {}
    whole: Layers = {}
    for name in stored.metas:
        inner = name.removeprefix(PREFIX)
        found = _name_in_base(inner, base)
        if found is not None:
            module, _, own = found.rpartition(".")
            whole.setdefault(module, {})[own] = stored.read(name)
        else:
            module, own = _split_name(inner, modules)
            layers.setdefault(module, {})[own] = stored.read(name)
    return layers, whole


def _split_name(name: str, modules: Collection[str]) -> tuple[str, str]:
    """Return the module of the base and the rest of the name of a tensor of its adapter."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        module = _name_in_base(".".join(parts[:count]), modules)
        if module is not None:
            return module, ".".join(parts[count:])
    raise ZooError(f"the base has no module of '{name}'")


def _name_in_base(name: str, known: Collection[str]) -> str | None:
    """Return the same name, or the only one that differs by a prefix such as ``bert.``."""
    if name in known:
        return name
    found = [other for other in known if other.endswith(f".{name}") or name.endswith(f".{other}")]
    return found[0] if len(found) == 1 else None


def write_folder(folder: Path, config: Mapping[str, Any], layers: Layers) -> None:
    """Write an adapter to a new folder."""
    target = Path(os.path.realpath(folder))
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
        raise ArtifactError(f"{folder} already exists and is not an empty folder; choose another")
    tensors = {
        f"{PREFIX}{module}.{name}": tensor.contiguous()
        for module, each in layers.items()
        for name, tensor in each.items()
    }
    metas = {name: TensorMeta.of(tensor) for name, tensor in tensors.items()}
    text = json.dumps(dict(sorted(config.items())), indent=2, ensure_ascii=False)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with staging_dir(target) as staging:
            new = staging / "new"
            new.mkdir()
            write_tensors(new / WEIGHTS, metas, tensors.items())
            (new / CONFIG).write_text(text + "\n", encoding="utf-8")
            os.replace(new, target)
    except OSError as error:
        raise ArtifactError(f"{folder} could not be written: {os_error_message(error)}") from error


def flat_names(layers: Layers) -> dict[str, Tensor]:
    """Return tensors by their whole names."""
    return {f"{module}.{name}": t for module, each in layers.items() for name, t in each.items()}
