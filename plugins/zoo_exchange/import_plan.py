"""Import of other libraries' models: weights by a map, folders by an importer."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from zoo.artifact import named_tensors, write
from zoo.artifact.saving import write_stream
from zoo.artifact.weights import load_weights
from zoo.data.chat_template import CHAT, ChatTemplate
from zoo.data.tokenizer import attach_tokenizers, read_tokenizer
from zoo.errors import ZooError, ZooWarning, truncate
from zoo.interfaces import Model
from zoo.interfaces.importer import Importer
from zoo.interfaces.tensors import TensorMeta
from zoo.registry.blueprint import format_error
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.registry.plugin_call import PluginCall
from zoo.spec.composition import (
    attach_metadata,
    build_on_meta,
    resolve_device,
    resolve_dtype,
    validate_spec,
)
from zoo.spec.spec import Source, Spec
from zoo_exchange.check_result import TOLERANCE, CheckResult
from zoo_exchange.lost_tensors import LOST, import_notes
from zoo_exchange.mapping import Originals, TensorMap, TensorPlan, plan_tensors, read_map
from zoo_exchange.module_names import related_modules
from zoo_exchange.output_check import check_outputs
from zoo_exchange.source_files import open_weights, read_config

MAX_IN_MEMORY = 200_000_000
"""Models of at most this many bytes are run before they are written, to record a probe."""


MapSource = str | os.PathLike[str] | Mapping[str, Any]
"""A map file, the name of a map of a plugin, or the content of a map."""


@dataclass(frozen=True)
class ImportPlan:
    """A validated import that has not been written yet."""

    model: Model
    tensors: TensorPlan
    read: Callable[[str], Tensor]
    spec: Spec
    registry: ComponentRegistry
    provenance: Mapping[str, Any] = field(default_factory=dict)
    original: Callable[[], Mapping[str, Tensor]] | None = None
    """Computes inputs and outputs with the other library; None without an importer."""

    @property
    def notes(self) -> list[str]:
        """Lines about tensors of the file that the model does not have."""
        return import_notes(self.tensors.lost)

    def load(self, dtype: torch.dtype | None = None, device: str | torch.device = "cpu") -> Model:
        """Return the model with its weights, without writing a file."""
        name, tensors = self.provenance["imported"], dict(self.tensors.run(self.read))
        return load_weights(name, self.spec, tensors, device=resolve_device(device), dtype=dtype)

    def check_with_original(
        self, *, tolerance: float = TOLERANCE, device: str | torch.device = "cpu"
    ) -> tuple[ImportPlan, CheckResult]:
        """Compare the model in float32 with the other library's, for random inputs; as `check`."""
        if self.original is None:
            raise ZooError("the other library runs only models that an importer supports")
        arrays = {name: tensor.numpy() for name, tensor in self.original().items()}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "random-inputs.npz"
            numpy.savez(file, **arrays)  # type: ignore[arg-type]
            return self.check(file, tolerance=tolerance, dtype=torch.float32, device=device)

    def check(
        self,
        file: str | os.PathLike[str],
        *,
        tolerance: float = TOLERANCE,
        dtype: torch.dtype | None = None,
        device: str | torch.device = "cpu",
    ) -> tuple[ImportPlan, CheckResult]:
        """Compare the model with the original's outputs in a file (`check_outputs`).

        Returns:
            The plan with the result in its provenance, and the result.
        """
        their_modules = related_modules(self.tensors)
        model = self.load(dtype, device)
        result = check_outputs(model, file, tolerance=tolerance, their_modules=their_modules)
        return replace(self, provenance={**self.provenance, "check": result.as_json()}), result

    def write(
        self, output: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
    ) -> Path:
        """Write the model file atomically; call `progress` with the bytes of each tensor.

        A large model is written in a stream: one tensor at a time is in memory, and it is not run.
        """
        assert self.model.spec is not None
        if self.tensors.nbytes > MAX_IN_MEMORY:
            return write_stream(
                self.model,
                self.tensors.targets,
                self.tensors.run(self.read, progress),
                output,
                provenance=self.provenance,
            )
        return write(
            self.model.spec,
            self.model.providers,
            self.tensors.run(self.read, progress),
            output,
            provenance=self.provenance,
            tokenizer=self.model.tokenizer,
            registry=self.registry,
        )


def plan_import(
    source: str | os.PathLike[str],
    *,
    spec: Source | None = None,
    map: MapSource | None = None,
    overrides: Iterable[str] = (),
    tokenizer: str | os.PathLike[str] | None = None,
    dtype: str | None = None,
    ignore: Collection[str] = (),
    registry: ComponentRegistry | None = None,
    origin: Mapping[str, Any] | None = None,
) -> ImportPlan:
    """Plan the import of weights with a spec and a map, or of a folder with its importer.

    Args:
        source: a safetensors file or a folder.
        spec: the spec of the model; by default the importer creates it.
        map: a map file, the name of a map of a plugin, or its content; required with `spec`.
        overrides: values of the spec to override, as ``key.key=value``.
        tokenizer: a ``tokenizer.json`` to store in the model file.
        dtype: the dtype of floating-point parameters, by default that of the weights.
        ignore: keys of ``config.json`` and ``generation_config.json`` to leave out.
        registry: the component registry, by default that of the installed plugins.
        origin: where the source is from, for the provenance; by default its name.
    """
    registry = registry or default_registry()
    path = Path(source)
    if not path.exists():
        raise ZooError(f"{source}: no such file or folder")
    provenance: dict[str, Any] = {"imported": path.name} if origin is None else dict(origin)
    folder = _read_folder(path, spec, map, ignore, registry)
    if folder is not None:
        importer, config = folder
        with wrap_importer_errors(importer):
            config = importer.extend_config(config, path, open_weights(path))
        folder = importer, config
        provenance |= {"importer": importer.name, "config": dict(config)}
    found = _describe(path, folder, spec, map, overrides, tokenizer, registry)
    if found.chat is not None:
        _check_chat(found.chat)
    original = None if folder is None else partial(_run_original, *folder, path, found.spec)
    model = found.model
    parameters = {name: TensorMeta.of(tensor) for name, tensor in named_tensors(model).items()}
    weights = open_weights(path, found.weight_folders)
    _reject_float8(weights.metas)
    tensors = plan_tensors(
        found.map, weights.metas, parameters, dtype=resolve_dtype(dtype) if dtype else None
    )
    tensors.check_values(weights.read)
    originals = Originals.of(found.map, tensors, weights.metas, keep_dtypes=dtype is None)
    if originals.as_json():
        provenance["originals"] = originals.as_json()
    if tensors.lost:
        provenance[LOST] = dict(tensors.lost)
    return ImportPlan(model, tensors, weights.read, found.checked, registry, provenance, original)


def check_import(
    folder: Path,
    *,
    spec: Source | None = None,
    map: MapSource | None = None,
    overrides: Iterable[str] = (),
    tokenizer: str | os.PathLike[str] | None = None,
    dtype: str | None = None,
    ignore: Collection[str] = (),
    registry: ComponentRegistry | None = None,
) -> None:
    """Raise ZooError if a folder cannot be imported, whatever its weights, which it may lack.

    The arguments are those of `plan_import`, which repeats the checks, and their warnings.
    """
    registry = registry or default_registry()
    if dtype is not None:
        resolve_dtype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZooWarning)
        found = _read_folder(folder, spec, map, ignore, registry)
        _describe(folder, found, spec, map, overrides, tokenizer, registry)


Folder = tuple[Importer, Mapping[str, Any]]
"""The importer of a folder, and the config that it has read."""


def _read_folder(
    path: Path,
    spec: Source | None,
    map: MapSource | None,
    ignore: Collection[str],
    registry: ComponentRegistry,
) -> Folder | None:
    """Return the importer and the config of a folder; None with a spec and a map."""
    if (spec is None) != (map is None):
        raise ZooError("--spec and --map are required together, or neither for a folder")
    if spec is not None:
        if ignore:
            raise ZooError("--ignore is for folders that an importer reads, without --spec")
        return None
    config = {key: value for key, value in read_config(path).items() if key not in ignore}
    importer = find_importer(config, registry)
    with wrap_importer_errors(importer):
        used = {"architectures", "model_type", *importer.config_keys}.intersection(ignore)
        if used:
            name = min(used)
            raise ZooError(f"--ignore {name}: the importer '{importer.name}' needs this key")
        return importer, importer.read_folder(config, path, ignore)


@dataclass(frozen=True)
class _Description:
    """What is imported, without its weights."""

    spec: Source
    checked: Spec
    model: Model
    map: TensorMap
    weight_folders: Sequence[str]
    chat: ChatTemplate | None


def _describe(
    path: Path,
    folder: Folder | None,
    spec: Source | None,
    map: MapSource | None,
    overrides: Iterable[str],
    tokenizer: str | os.PathLike[str] | None,
    registry: ComponentRegistry,
) -> _Description:
    """Return what is imported; raise ZooError if it is not valid."""
    tokenizers: Mapping[str, Any] = {}
    weight_folders: Sequence[str] = ()
    template: Mapping[str, Any] | None = None
    importer: Importer | None = None
    if folder is not None:
        importer, config = folder
        with wrap_importer_errors(importer):
            spec, map = importer.spec(config), importer.map(config)
            tokenizers = importer.tokenizers(path, config)
            weight_folders = importer.weight_folders(spec)
            template = importer.chat_template(path, config)
    elif isinstance(map, (str, os.PathLike)):
        map = find_map(map, registry)
    assert spec is not None
    assert map is not None
    if tokenizer is not None:
        tokenizers = dict.fromkeys(("source", "target"), tokenizer)
    checked = validate_spec(spec, overrides=overrides, registry=registry, importer=importer)
    model = attach_metadata(build_on_meta(checked), checked)
    texts = {side: _tokenizer_text(tokenizer) for side, tokenizer in tokenizers.items()}
    attach_tokenizers(model, texts, trained=True)
    chat = None
    if template is not None and "target" in texts:
        chat = ChatTemplate(**template)
        model.tokenizer = {**texts, CHAT: chat.to_json()}
    tensor_map = read_map(map, spec=model.spec)
    return _Description(spec, checked, model, tensor_map, weight_folders, chat)


def _check_chat(template: ChatTemplate) -> None:
    """Warn of a template that cannot format a short conversation."""
    roles = ("user", "assistant", "user")
    try:
        template.render([{"role": role, "content": "Hello"} for role in roles])
    except ZooError as error:
        message = f"the model may not take conversations: {error}"
        warnings.warn(message, ZooWarning, stacklevel=2)


def _tokenizer_text(tokenizer: str | os.PathLike[str] | Mapping[str, Any]) -> str:
    """Return the JSON of a tokenizer, given its file or its content."""
    return json.dumps(tokenizer) if isinstance(tokenizer, Mapping) else read_tokenizer(tokenizer)


def _reject_float8(metas: Mapping[str, TensorMeta]) -> None:
    for name, meta in metas.items():
        if meta.dtype.is_floating_point and meta.dtype.itemsize == 1:
            dtype = str(meta.dtype).removeprefix("torch.")
            raise ZooError(
                f"'{name}' is {dtype}: fp8 weights are quantized, with scales that a map does not "
                "apply; import the checkpoint in bfloat16 or float16 instead"
            )


def _run_original(
    importer: Importer, config: Mapping[str, Any], folder: Path, spec: Any
) -> Mapping[str, Tensor]:
    with wrap_importer_errors(importer):
        return importer.original_outputs(folder, config, spec)


@contextmanager
def wrap_importer_errors(importer: Importer) -> Iterator[None]:
    """Raise ZooError with the importer's name for any other exception in the block."""
    try:
        with PluginCall():
            yield
    except ZooError:
        raise
    except Exception as error:
        raise ZooError(
            f"importer '{importer.name}' failed, which is a bug in its plugin: "
            f"{truncate(format_error(error), 200)}"
        ) from error


def find_map(source: str | os.PathLike[str], registry: ComponentRegistry) -> Path:
    """Return the file of a map, given its path or the name of a map of a plugin."""
    path = Path(source)
    is_name = path.name == str(source) and path.suffix not in (".yaml", ".yml")
    return registry.map(str(source)) if is_name and not path.is_file() else path


def find_importer(config: Mapping[str, Any], registry: ComponentRegistry) -> Importer:
    """Return the only importer that matches a config."""
    matching = []
    for importer in registry.importers:
        with wrap_importer_errors(importer):
            if importer.matches(config):
                matching.append(importer)
    if len(matching) == 1:
        return matching[0]
    model_type = truncate(str(config.get("model_type")), 100)
    if matching:
        names = " and ".join(f"'{importer.name}'" for importer in matching)
        raise ZooError(
            f"importers {names} both support model_type '{model_type}'; set --spec and --map"
        )
    raise ZooError(
        f"no importer supports model_type '{model_type}'{_nearest(config, registry)}; describe the "
        "model with --spec and --map (docs/importing.md), or add an importer "
        "(docs/new-architecture.md)"
    )


def _nearest(config: Mapping[str, Any], registry: ComponentRegistry) -> str:
    """Return the importer whose config has the most keys in common with another config."""
    theirs = set(config) - {"model_type", "architectures"}
    best, name, shared = 0.2, "", set[str]()
    for importer in registry.importers:
        with wrap_importer_errors(importer):
            keys = set(importer.config_keys) - {"model_type", "architectures"}
        share = len(keys & theirs) / max(1, len(keys | theirs))
        if share > best:
            best, name, shared = share, importer.name, keys & theirs
    if not name:
        return ""
    return f"; nearest is '{name}', with {len(shared)} of its {len(theirs)} config keys"
