"""Folders of adapters of peft: their files, and the names of tensors in them."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.artifact.checkpoint import open_tensors, write_tensors
from zoo.errors import ArtifactError, ZooError, truncate
from zoo.files import os_error_message, staging_dir
from zoo.hub.other_library import read_json
from zoo.interfaces.tensors import TensorMeta, TensorReader

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
"""Begins the names of tensors."""
_MAX_OWN = 3
"""The largest number of steps in the name of a tensor in its module, as ``lora_A.weight``."""
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
    known, modules = _Names(base), _Names({name.rpartition(".")[0] for name in base})
    layers: Layers = {}
    whole: Layers = {}
    for name, meta in stored.metas.items():
        if not meta.dtype.is_floating_point:
            raise ZooError(f"{name} is {meta.dtype}; expected floating-point numbers")
        inner = name.removeprefix(PREFIX)
        found = known.find(inner)
        if found is not None:
            module, _, own = found.rpartition(".")
            whole.setdefault(module, {})[own] = _read_finite(stored, name)
        else:
            module, own = _split_name(inner, modules)
            layers.setdefault(module, {})[own] = _read_finite(stored, name)
    return layers, whole


def _read_finite(stored: TensorReader, name: str) -> Tensor:
    """Return a tensor; raise ZooError if a value is NaN or infinite."""
    tensor = stored.read(name)
    if not tensor.to(torch.float32).isfinite().all():
        raise ZooError(f"{name} has values that are not finite in float32")
    return tensor


def _split_name(name: str, modules: _Names) -> tuple[str, str]:
    """Return the module of the base and the rest of the name of a tensor of its adapter."""
    parts = name.split(".")
    for count in range(len(parts) - 1, max(0, len(parts) - 1 - _MAX_OWN), -1):
        module = modules.find(".".join(parts[:count]))
        if module is not None:
            return module, ".".join(parts[count:])
    raise ZooError(f"the base has no module of '{truncate(name, 200)}'")


class _Names:
    """Names of a base, of which one is found that differs by a prefix such as ``bert.``."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = set(names)
        self._depth = max((name.count(".") for name in names), default=0) + 1
        self._by_end: dict[str, list[str]] = {}
        for name in self._names:
            parts = name.split(".")
            for start in range(1, len(parts)):
                self._by_end.setdefault(".".join(parts[start:]), []).append(name)

    def find(self, name: str) -> str | None:
        """Return the same name, or the only one that differs by a prefix."""
        if name in self._names:
            return name
        parts = name.split(".")
        ends = (".".join(parts[-count:]) for count in range(1, min(self._depth + 1, len(parts))))
        found = [*self._by_end.get(name, ()), *(end for end in ends if end in self._names)]
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
