"""Models of other libraries brought in: weights by a map, whole folders by an importer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from zoo.artifact import named_tensors, write
from zoo.artifact.checkpoint import open_tensors
from zoo.errors import ZooError, suggest, truncate
from zoo.exchange.mapping import Plan, plan, read_map
from zoo.files import os_error_message
from zoo.generation.tokenizer import attach_tokenizers, read_tokenizer
from zoo.hub import fetch
from zoo.hub.reference import is_repository, local_path
from zoo.interfaces import Model
from zoo.interfaces.importer import Importer
from zoo.interfaces.tensors import TensorMeta
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import attach_metadata, build_on_meta, check_spec, resolve_dtype
from zoo.spec.spec import Source

MAX_CONFIG = 10_000_000
_SINGLE_FILE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_FETCH_PATTERNS = ("*.json", "*.txt", "*.model", "model*.safetensors")
_SHARD = re.compile(r"-\d+-of-\d+")
_TORCH_COMMAND = (
    "import torch; from glob import glob; from safetensors.torch import save_file; "
    "save_file({{k: v.contiguous().clone() for f in glob('{0}') for k, v in "
    "torch.load(f, map_location='cpu', weights_only=True).items()}}, 'model.safetensors')"
)
_NUMPY_COMMAND = (
    "import numpy; from safetensors.numpy import save_file; "
    "save_file(dict(numpy.load('{0}')), 'model.safetensors')"
)
_CONVERT_COMMANDS = {
    **dict.fromkeys((".bin", ".pt", ".pth", ".ckpt", ".pkl"), _TORCH_COMMAND),
    **dict.fromkeys((".npz", ".npy"), _NUMPY_COMMAND),
}


@dataclass(frozen=True)
class ImportPlan:
    """A model about to come in: every check is done, nothing is written."""

    model: Model
    plan: Plan
    read: Callable[[str], Tensor]
    registry: ComponentRegistry
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(meta.nbytes for meta in self.plan.targets.values())

    def write(
        self, output: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
    ) -> Path:
        """The model file, whole or not at all; `progress` hears of bytes done."""
        assert self.model.spec is not None
        tensors = self.plan.run(self.read, progress)
        return write(
            self.model.spec,
            self.model.providers,
            tensors,
            output,
            provenance=self.provenance,
            tokenizer=self.model.tokenizer,
            registry=self.registry,
        )


def plan_import(
    source: str | os.PathLike[str],
    *,
    spec: Source | None = None,
    map: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    overrides: Iterable[str] = (),
    tokenizer: str | os.PathLike[str] | None = None,
    dtype: str | None = None,
    registry: ComponentRegistry | None = None,
) -> ImportPlan:
    """A model planned from weights with a spec and a map, or from a folder by its importer."""
    registry = registry or default_registry()
    path = resolve_source(source)
    about: dict[str, Any] = {"imported": path.name}
    if local_path(source) is None:
        about = {"imported": os.fspath(source), "commit": path.name}
    tokenizers: Mapping[str, Any] = {}
    if (spec is None) != (map is None):
        raise ZooError("--spec and --map go together: what the model is, and where its weights go")
    if spec is None or map is None:
        config: Mapping[str, Any] = read_config(path)
        importer = find_importer(config, registry)
        with wrap_importer_errors(importer):
            config = importer.extend_config(config, path, open_tensors(find_weight_files(path)))
            spec, map = importer.spec(config), importer.map(config)
            tokenizers = importer.tokenizers(path, config)
        about |= {"importer": importer.name, "config": dict(config)}
    elif isinstance(map, (str, os.PathLike)):
        map = find_map(map, registry)
    if tokenizer is not None:
        tokenizers = dict.fromkeys(("source", "target"), tokenizer)
    read, _ = check_spec(spec, overrides=overrides, registry=registry)
    model = attach_metadata(build_on_meta(read), read)
    attach_tokenizers(model, {side: read_tokenizer(file) for side, file in tokenizers.items()})
    wanted = {name: TensorMeta.of(tensor) for name, tensor in named_tensors(model).items()}
    tensor_map = read_map(map, spec=model.spec)
    file = open_tensors(find_weight_files(path))
    planned = plan(tensor_map, file.metas, wanted, dtype=resolve_dtype(dtype) if dtype else None)
    return ImportPlan(model, planned, file.read, registry, about)


def import_model(
    source: str | os.PathLike[str], output: str | os.PathLike[str], **options: Any
) -> Path:
    """Bring a model in and write it; the options are those of `plan_import`."""
    return plan_import(source, **options).write(output)


@contextmanager
def wrap_importer_errors(importer: Importer) -> Iterator[None]:
    """Faults of a plugin's importer are told in words, with its name."""
    try:
        yield
    except ZooError:
        raise
    except Exception as error:
        detail = truncate(str(error), 200)
        raise ZooError(
            f"importer '{importer.name}' failed, which is a fault of its plugin: "
            f"{type(error).__name__}: {detail}"
        ) from error


def find_map(source: str | os.PathLike[str], registry: ComponentRegistry) -> Path:
    """The file a person means by a path or by the name of a shipped map."""
    path = Path(source)
    named = path.name == str(source) and path.suffix not in (".yaml", ".yml")
    return registry.map(str(source)) if named and not path.is_file() else path


def resolve_source(source: str | os.PathLike[str]) -> Path:
    """The file or folder that is meant; a repository of the Hub is fetched, its data alone."""
    path = local_path(source)
    if path is None and is_repository(os.fspath(source)):
        return fetch(os.fspath(source), _FETCH_PATTERNS)
    if path is None or not path.exists():
        raise ZooError(f"there is no file or folder {source}")
    return path


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a folder."""
    if not folder.is_dir():
        reject_pickle(folder)
        raise ZooError(
            f"{folder} is one file, which does not say what model it is; give --spec and --map, "
            "or a folder with a config.json"
        )
    file = folder / "config.json"
    if not file.exists():
        raise ZooError(
            f"{folder} has no config.json to say what model it is; give --spec and --map"
        )
    try:
        if file.stat().st_size > MAX_CONFIG:
            raise ZooError(f"{file} has more than the {MAX_CONFIG:,} bytes of a config")
        config = json.loads(file.read_text(encoding="utf-8"), parse_constant=_reject_constant)
    except OSError as error:
        raise ZooError(f"{file} cannot be read: {os_error_message(error)}") from None
    except (ValueError, RecursionError) as error:
        raise ZooError(f"{file} is no JSON: {truncate(str(error), 200)}") from None
    if not isinstance(config, dict):
        raise ZooError(f"{file} should hold a mapping")
    return config


def _reject_constant(word: str) -> None:
    raise ValueError(f"{word} is no number there")


def find_importer(config: Mapping[str, Any], registry: ComponentRegistry) -> Importer:
    """The one importer that knows this config."""
    found = []
    for importer in registry.importers:
        with wrap_importer_errors(importer):
            if importer.matches(config):
                found.append(importer)
    if len(found) == 1:
        return found[0]
    kind = truncate(str(config.get("model_type")), 100)
    if found:
        names = " and ".join(f"'{importer.name}'" for importer in found)
        raise ZooError(f"importers {names} both take model_type '{kind}'; give --spec and --map")
    known = suggest(kind, [importer.name for importer in registry.importers])
    raise ZooError(f"no importer takes model_type '{kind}'{known}; or give --spec and --map")


def find_weight_files(path: Path) -> list[Path]:
    """The safetensors files of a model, whole or in shards."""
    if not path.is_dir():
        reject_pickle(path)
        return [path]
    if (path / _SINGLE_FILE).is_file():
        return [path / _SINGLE_FILE]
    if (path / _INDEX).is_file():
        return _list_shards(path)
    for file in sorted(path.iterdir()):
        reject_pickle(file)
    raise ZooError(f"{path} holds neither {_SINGLE_FILE} nor {_INDEX}")


def _list_shards(folder: Path) -> list[Path]:
    index = folder / _INDEX
    try:
        if index.stat().st_size > MAX_CONFIG:
            raise ZooError(f"{index} has more than the {MAX_CONFIG:,} bytes of an index")
        table = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        names = sorted(set(table.values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ZooError(
            f"{index} should list under 'weight_map' which file has which tensor"
        ) from None
    for name in names:
        if (
            not isinstance(name, str)
            or Path(name).name != name
            or not name.endswith(".safetensors")
        ):
            raise ZooError(f"{index} names {name!r}, which is no safetensors file beside it")
        if not (folder / name).is_file():
            raise ZooError(f"{index} names {name}, which is not there")
    return [folder / name for name in names]


def reject_pickle(path: Path) -> None:
    """Pickles can run code when read, so they are not read."""
    command = _CONVERT_COMMANDS.get(path.suffix)
    if command:
        raise ZooError(
            f"{path} may hold a pickle, which can run code when it is read; where you trust it, "
            f'convert it once: python -c "{command.format(_SHARD.sub("-*", path.name))}"'
        )
