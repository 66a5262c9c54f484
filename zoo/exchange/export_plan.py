"""Models taken out again: the tensors and the config that another library reads."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from zoo.artifact import read_header
from zoo.artifact.checkpoint import open_tensors, write_tensors
from zoo.errors import ArtifactError, RegistryError, ZooError, suggest
from zoo.exchange.import_plan import find_map, find_weight_files, wrap_importer_errors
from zoo.exchange.mapping import Plan, plan, read_map
from zoo.files import os_error_message
from zoo.interfaces.importer import Importer
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import resolve_dtype


@dataclass(frozen=True)
class ExportPlan:
    """A model about to go out: every check is done, nothing is written."""

    plan: Plan
    read: Callable[[str], Tensor]
    config: Mapping[str, Any] | None = None
    tokenizer: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(meta.nbytes for meta in self.plan.targets.values())

    def write(
        self, folder: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
    ) -> Path:
        """A folder with weights, and with config and tokenizer where there are some."""
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise ArtifactError(f"{folder} is there already; name a new or an empty folder")
        staging = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            staging.mkdir(parents=True)
            self._write_files(staging, progress)
            os.replace(staging, target)
        except OSError as error:
            raise ArtifactError(
                f"{folder} could not be written: {os_error_message(error)}"
            ) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return target

    def _write_files(self, staging: Path, progress: Callable[[int], None] | None) -> None:
        weights = staging / "model.safetensors"
        write_tensors(weights, self.plan.targets, self.plan.run(self.read, progress))
        if self.config is not None:
            _write_json(staging / "config.json", self.config)
        for name, data in self.files.items():
            (staging / name).parent.mkdir(exist_ok=True)
            _write_json(staging / name, data)
        texts = set(self.tokenizer.values())
        if len(texts) == 1:  # two would need names that the other library knows
            (staging / "tokenizer.json").write_text(texts.pop(), encoding="utf-8")
            about = {"tokenizer_class": "PreTrainedTokenizerFast"}
            _write_json(staging / "tokenizer_config.json", about)


def _write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def plan_export(
    model: str | os.PathLike[str],
    *,
    to: str | None = None,
    map: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    dtype: str | None = None,
    registry: ComponentRegistry | None = None,
) -> ExportPlan:
    """A model file planned for another library, by an importer or by a map of your own."""
    registry = registry or default_registry()
    header = read_header(model)
    config = None
    files: Mapping[str, Any] = {}
    if map is None:
        importer = find_exporter(header.provenance, to, registry)
        original = header.provenance.get("config")
        with wrap_importer_errors(importer):
            config = importer.config(header.spec, original if isinstance(original, dict) else {})
            map, files = importer.map(config), importer.files(header.spec)
    elif to is not None:
        raise ZooError("--to and --map are two ways to say where the weights go; give one")
    elif isinstance(map, (str, os.PathLike)):
        map = find_map(map, registry)
    tensor_map = read_map(map, spec=header.spec).reversed()
    file = open_tensors(find_weight_files(Path(model)))
    planned = plan(tensor_map, file.metas, None, dtype=resolve_dtype(dtype) if dtype else None)
    _check_lossless(planned, file.read)
    return ExportPlan(planned, file.read, config, header.tokenizer, files)


def export_model(
    model: str | os.PathLike[str], folder: str | os.PathLike[str], **options: Any
) -> Path:
    """Take a model out into a folder; the options are those of `plan_export`."""
    return plan_export(model, **options).write(folder)


def find_exporter(
    provenance: Mapping[str, Any], to: str | None, registry: ComponentRegistry
) -> Importer:
    """The importer that is named, or the one that brought the model in."""
    known = {importer.name: importer for importer in registry.importers}
    wanted = to if to is not None else provenance.get("importer")
    if wanted is None:
        raise ZooError(f"say where to: --to NAME, or --map FILE{suggest('', known)}")
    if wanted not in known:
        raise RegistryError(f"no importer named '{wanted}'{suggest(str(wanted), known)}")
    return known[wanted]


def _check_lossless(planned: Plan, read: Callable[[str], Tensor]) -> None:
    """What the map fills is not exported, so it must still be what the map filled it with."""
    for name, value in planned.constant.items():
        if not bool((read(name) == value).all()):
            raise ZooError(
                f"'{name}' has no place in the other layout and is no longer {value:g} "
                "throughout, so an export would lose it"
            )
