"""Export of models to other libraries: tensors, config and tokenizer."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.artifact import Header, read_header
from zoo.artifact.checkpoint import open_tensors, write_tensors
from zoo.data.chat_template import CHAT, ChatTemplate
from zoo.data.tokenizer import Tokenizer
from zoo.errors import ArtifactError, MissingExtra, RegistryError, ZooError, suggest
from zoo.files import os_error_message, staging_dir
from zoo.interfaces.importer import Importer
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import resolve_dtype
from zoo_exchange.import_plan import find_map, wrap_importer_errors
from zoo_exchange.lost_tensors import export_notes
from zoo_exchange.mapping import Originals, TensorJob, TensorPlan, plan_tensors, read_map
from zoo_exchange.mapping.fill_value import filled_tensor
from zoo_exchange.source_files import find_weight_files

_log = logging.getLogger("zoo.exchange")


@dataclass(frozen=True)
class ExportPlan:
    """A validated export that has not been written yet."""

    tensors: TensorPlan
    read: Callable[[str], Tensor]
    config: Mapping[str, Any] | None = None
    tokenizer: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    weight_folders: Sequence[str] = ()
    notes: Sequence[str] = ()
    """Lines about tensors that the other library has and that are not exported."""

    def write(
        self, folder: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
    ) -> Path:
        """Write a folder with the weights and, if present, config and tokenizer.

        `progress` is called with the bytes of each tensor.
        """
        target = Path(os.path.realpath(folder))
        if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
            raise ArtifactError(
                f"{folder} already exists and is not an empty folder; choose another"
            )
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with staging_dir(target) as staging:
                (staging / "new").mkdir()
                self._write_files(staging / "new", progress)
                os.replace(staging / "new", target)
        except OSError as error:
            raise ArtifactError(
                f"{folder} could not be written: {os_error_message(error)}"
            ) from error
        return Path(folder)

    def _write_files(self, staging: Path, progress: Callable[[int], None] | None) -> None:
        for folder, plan in self._weight_files().items():
            (staging / folder).mkdir(exist_ok=True)
            tensors = plan.run(self.read, progress)
            write_tensors(
                staging / folder / "model.safetensors",
                {name.removeprefix(folder): meta for name, meta in plan.targets.items()},
                ((name.removeprefix(folder), tensor) for name, tensor in tensors),
            )
        if self.config is not None:
            _write_json(staging / "config.json", self.config)
        for name, data in self.files.items():
            (staging / name).parent.mkdir(exist_ok=True)
            _write_json(staging / name, data)
        texts = {text for key, text in self.tokenizer.items() if key != CHAT}
        if len(texts) == 1:  # transformers has no common file names for two tokenizers
            text = texts.pop()
            (staging / "tokenizer.json").write_text(text, encoding="utf-8")
            tokenizer_config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
            with contextlib.suppress(MissingExtra):  # without tokenizers
                added = Tokenizer(text).added_tokens
                tokenizer_config |= {"additional_special_tokens": added} if added else {}
            if CHAT in self.tokenizer:
                chat = ChatTemplate.from_json(self.tokenizer[CHAT])
                tokenizer_config |= {**chat.tokens, "chat_template": chat.template}
            _write_json(staging / "tokenizer_config.json", tokenizer_config)

    def _weight_files(self) -> dict[str, TensorPlan]:
        """Return the tensors of each file, by its folder; "" for that of the model."""
        jobs: dict[str, list[TensorJob]] = {"": []}
        for job in self.tensors.jobs:
            first = next(iter(job.targets))
            prefixes = (f"{name}/" for name in self.weight_folders)
            folder = next((prefix for prefix in prefixes if first.startswith(prefix)), "")
            jobs.setdefault(folder, []).append(job)
        return {folder: replace(self.tensors, jobs=own) for folder, own in jobs.items()}


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
    """Plan the export of a model file with an importer or a map.

    Args:
        model: the model file.
        to: the name of an importer, by default the one that the model was imported with.
        map: a map file, the name of a map of a plugin, or its content; instead of `to`.
        dtype: the dtype of floating-point tensors, by default unchanged.
        registry: the component registry, by default that of the installed plugins.
    """
    registry = registry or default_registry()
    header = read_header(model)
    config = None
    files: Mapping[str, Any] = {}
    folders: Sequence[str] = ()
    if map is None:
        importer = find_exporter(header, to, registry)
        original = header.provenance.get("config")
        original = original if isinstance(original, dict) else {}
        with wrap_importer_errors(importer):
            config = importer.config(header.spec, original)
            map, files = importer.map(config), importer.exported_files(header.spec, original)
            folders = importer.weight_folders(header.spec)
    elif to is not None:
        raise ZooError("--to and --map exclude each other; set one of them")
    elif isinstance(map, (str, os.PathLike)):
        map = find_map(map, registry)
    tensor_map = read_map(map, spec=header.spec)
    weights = open_tensors(find_weight_files(Path(model)))
    tensors = plan_tensors(
        tensor_map.inverse(), weights.metas, None, dtype=resolve_dtype(dtype) if dtype else None
    )
    originals, provenance = Originals(), {}
    if to in (None, header.provenance.get("importer")):
        provenance = header.provenance
        originals = Originals.from_json(header.provenance.get("originals", {}))
        tensors = originals.restore(tensors, keep_dtypes=dtype is None)
    _check_lossless(tensors, weights.read)
    tensors.check_values(weights.read)
    classes = (config or {}).get("architectures") or ()
    notes = export_notes(tensor_map, tensors, originals, provenance, classes)
    return ExportPlan(tensors, weights.read, config, header.tokenizer, files, folders, notes)


def export_model(
    model: str | os.PathLike[str], folder: str | os.PathLike[str], **options: Any
) -> Path:
    """Export a model to a folder; `options` are those of `plan_export`."""
    plan = plan_export(model, **options)
    for note in plan.notes:
        _log.warning("%s: %s", folder, note)
    return plan.write(folder)


def find_exporter(header: Header, to: str | None, registry: ComponentRegistry) -> Importer:
    """Return the importer with the name `to`, or the one that the model was imported with."""
    importers = {importer.name: importer for importer in registry.importers}
    name = to if to is not None else header.provenance.get("importer")
    if name is None:
        raise ZooError(
            f"{header.path} was not imported; set --to NAME or --map FILE{suggest('', importers)}"
        )
    if name not in importers:
        raise RegistryError(f"no importer named '{name}'{suggest(str(name), importers)}")
    return importers[name]


def _check_lossless(tensors: TensorPlan, read: Callable[[str], Tensor]) -> None:
    """Raise ZooError if a parameter that the map fills, and does not export, has changed."""
    for name, value in tensors.constant.items():
        tensor = read(name)
        if not torch.equal(tensor, filled_tensor(tensor.shape, value, tensor.dtype)):
            wanted = "the identity" if value == "identity" else f"{value:g} everywhere"
            raise ZooError(
                f"'{name}' has no counterpart in the other library and is not {wanted}; an export "
                "would lose it"
            )
