"""The header of an artifact: its metadata, parsed and validated."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from zoo.artifact.layout import (
    MAX_TENSORS,
    InvalidSafetensorsError,
    Layout,
    hash_json,
    parse_json,
)
from zoo.errors import ArtifactError, one_line, truncate

FORMAT = "2"
SUPPORTED_FORMATS = ("1", FORMAT)
"""Format 1 has no hashes, digest, component paths or probe."""
SHARED_KEYS = ("spec", "lock", "places", "provenance", "tokenizer", "probe", "base")
"""Metadata that is only in the first shard of an artifact."""

_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Header:
    """Everything in an artifact except the weights.

    Attributes:
        providers: name, version, plugin and distribution of each component.
        component_paths: the path of each component in the spec, and its module names.
        tensors: dtype and shape of each tensor.
        hashes: the sha256 of each tensor; None in format 1.
        probe: a small input and the model's outputs for it, or the reason why there is none.
        files: name and size of each file.
        identity: one hash of the metadata and all weights; None in format 1.
        base: the model that has the other tensors (`BasePin`); None if the artifact has all.
    """

    path: Path
    format: str
    spec: dict[str, Any]
    providers: list[dict[str, Any]]
    component_paths: list[dict[str, Any]]
    provenance: dict[str, Any]
    tokenizer: dict[str, str]
    probe: dict[str, Any] | None
    hashes: dict[str, str] | None
    tensors: dict[str, tuple[str, tuple[int, ...]]]
    files: tuple[tuple[str, int], ...]
    identity: str | None
    base: dict[str, Any] | None = None

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)

    @property
    def dtypes(self) -> list[str]:
        return sorted({dtype for dtype, _ in self.tensors.values()})

    def as_json(self) -> dict[str, Any]:
        hashes = self.hashes or {}
        return {
            "file": str(self.path),
            "format": self.format,
            "identity": self.identity,
            "bytes": self.bytes,
            "files": [{"name": name, "bytes": size} for name, size in self.files],
            "dtypes": self.dtypes,
            "spec": self.spec,
            "lock": self.providers,
            "places": self.component_paths,
            "provenance": self.provenance,
            "tokenizer": sorted(self.tokenizer),
            "hashes": self.hashes is not None,
            "probe": self.probe,
            "base": self.base,
            "tensors": [
                {"name": name, "dtype": dtype, "shape": list(shape), "sha256": hashes.get(name)}
                for name, (dtype, shape) in self.tensors.items()
            ],
        }


class NotAnArtifactError(ArtifactError):
    """A safetensors file without a spec, such as that of another library."""


def check_digest(path: Path, layout: Layout) -> None:
    """Raise ArtifactError if the header is of another format or does not match its digest."""
    metadata = layout.metadata
    found = metadata.get("zoo")
    if not found:
        raise NotAnArtifactError(
            f"{path} contains no spec, so it is not an artifact; "
            "'zoo import' converts models of other libraries"
        )
    if found not in SUPPORTED_FORMATS:
        raise ArtifactError(
            f"{path} has format {found[:20]!a}; "
            f"supported formats are {' and '.join(SUPPORTED_FORMATS)}"
        )
    if found == FORMAT and "digest" not in metadata:
        raise ArtifactError(f"{path}: the header has no digest, which format {FORMAT} requires")
    if "digest" in metadata and metadata["digest"] != layout.digest():
        raise ArtifactError(
            f"{path}: the header changed after it was saved; it does not match its digest"
        )


def read_hashes(path: Path, layout: Layout) -> dict[str, str] | None:
    """Return the hash of each tensor in one file; None in format 1."""
    if layout.metadata["zoo"] == "1":
        return None
    hashes = _parse_key(path, layout.metadata, "hashes", None)
    if not isinstance(hashes, dict) or hashes.keys() != layout.tensors.keys():
        raise ArtifactError(f"{path}: the hashes in the header do not list exactly its tensors")
    if not all(isinstance(h, str) and _SHA256.fullmatch(h) for h in hashes.values()):
        raise ArtifactError(f"{path}: the hashes in the header are not sha256 hashes")
    return hashes


def header_from_metadata(
    path: Path,
    metadata: Mapping[str, str],
    layouts: Sequence[Layout],
    hashes: dict[str, str] | None,
    files: Sequence[tuple[str, int]],
) -> Header:
    """Build the header from the metadata of the first file and the layouts of all files."""
    parsed = {key: _parse_key(path, metadata, key, default) for key, default in _DEFAULTS.items()}
    for key, is_valid in _VALIDATORS.items():
        if not is_valid(parsed[key]):
            raise ArtifactError(f"{path}: '{key}' in the header is not valid")
    if "extends" in parsed["spec"]:
        raise ArtifactError(f"{path}: the spec in the header must be resolved, without 'extends'")
    tensors = {
        name: (stored.dtype, stored.shape)
        for layout in layouts
        for name, stored in sorted(layout.tensors.items())
    }
    return Header(
        path=path,
        format=metadata["zoo"],
        spec=parsed["spec"],
        providers=parsed["lock"],
        component_paths=parsed["places"],
        provenance=parsed["provenance"],
        tokenizer=parsed["tokenizer"],
        probe=parsed["probe"],
        hashes=hashes,
        tensors=tensors,
        files=tuple(files),
        identity=None if hashes is None else identity(metadata, hashes),
        base=parsed["base"],
    )


def identity(metadata: Mapping[str, str], hashes: Mapping[str, str]) -> str:
    """Return one hash of the model, which does not depend on how it is split into shards."""
    return hash_json([{key: metadata[key] for key in SHARED_KEYS if key in metadata}, dict(hashes)])


MAX_VALUES = {
    "spec": 20_000,
    "lock": 20_000,
    "places": 200_000,
    "provenance": 50_000,
    "tokenizer": 100,
    "probe": 10_000,
    "base": 2 * MAX_TENSORS + 10,
    "hashes": MAX_TENSORS + 1,
}
_DEFAULTS = {
    "spec": None,
    "lock": None,
    "places": "[]",
    "provenance": "{}",
    "tokenizer": "{}",
    "probe": "null",
    "base": "null",
}


def _parse_key(path: Path, metadata: Mapping[str, str], key: str, default: str | None) -> Any:
    text = metadata.get(key, default)
    if text is None:
        raise ArtifactError(f"{path}: the header has no '{key}'")
    max_values = MAX_VALUES[key]
    try:
        return parse_json(text, max_values=max_values)
    except (ValueError, RecursionError) as error:
        what = "is not valid" if isinstance(error, InvalidSafetensorsError) else "is not valid JSON"
        raise ArtifactError(f"{path}: '{key}' in the header {what}: {error}") from None


def _is_name(value: Any) -> bool:
    """Return whether a value is a string that can be printed in one line."""
    return isinstance(value, str) and one_line(value) == value


def _is_provider(row: Any) -> bool:
    keys = ("kind", "name", "plugin", "distribution", "distribution_version")
    return (
        isinstance(row, dict)
        and all(_is_name(row.get(key)) for key in keys)
        and type(row.get("version")) is int
    )


def _is_component_path(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and all(_is_name(row.get(key)) for key in ("path", "kind", "type"))
        and isinstance(row.get("at"), list)
        and all(_is_name(prefix) for prefix in row["at"])
    )


def _is_tokenizer(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _is_name(side) and isinstance(text, str) for side, text in value.items()
    )


def _is_probe(probe: Any) -> bool:
    if probe is None or (isinstance(probe, dict) and isinstance(probe.get("skipped"), str)):
        return True
    sides = [probe.get(side) for side in ("inputs", "outputs")] if isinstance(probe, dict) else []
    rows = [row for side in sides if isinstance(side, dict) for row in side.values()]
    complete = len(sides) == 2 and all(isinstance(side, dict) for side in sides)
    return complete and all(isinstance(row, dict) and "shape" in row for row in rows)


def _is_base(base: Any) -> bool:
    if base is None:
        return True
    return (
        isinstance(base, dict)
        and base.keys() == {"name", "revision", "sha256", "tensors"}
        and _is_name(base["name"])
        and (base["revision"] is None or _is_name(base["revision"]))
        and isinstance(base["sha256"], str)
        and isinstance(base["tensors"], dict)
        and all(_is_name(name) for pair in base["tensors"].items() for name in pair)
    )


def _list_of(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(is_valid(row) for row in value)


_VALIDATORS: dict[str, Callable[[Any], bool]] = {
    "spec": lambda value: isinstance(value, dict),
    "lock": _list_of(_is_provider),
    "places": _list_of(_is_component_path),
    "provenance": lambda value: isinstance(value, dict),
    "tokenizer": _is_tokenizer,
    "probe": _is_probe,
    "base": _is_base,
}


class FileHeader(Protocol):
    """The header of one file of an artifact, local or remote."""

    path: Path
    size: int
    layout: Layout
    hashes: dict[str, str] | None


def header_from_file(file: FileHeader) -> Header:
    """Return the header of a model in one file."""
    metadata = file.layout.metadata
    if "shard" in metadata:
        raise ArtifactError(
            f"{file.path} is shard {truncate(metadata['shard'], 20)} of a model; "
            "use the path of its directory or index"
        )
    files = [(file.path.name, file.size)]
    return header_from_metadata(file.path, metadata, [file.layout], file.hashes, files)


def header_from_shards(
    index: Path, weight_map: Mapping[str, str], model_id: str | None, files: Sequence[FileHeader]
) -> Header:
    """Return the header of a model in several files, which must match the index."""
    if sum(len(file.layout.tensors) for file in files) > MAX_TENSORS:
        raise ArtifactError(f"{index} lists more than {MAX_TENSORS:,} tensors")
    _check_weight_map(index, weight_map, files)
    firsts = [file.layout.metadata for file in files if "spec" in file.layout.metadata]
    numbers = sorted(file.layout.metadata.get("shard", "") for file in files)
    if len(firsts) != 1 or numbers != sorted(f"{n + 1}/{len(files)}" for n in range(len(files))):
        raise ArtifactError(f"{index}: its files are not the complete shards of one artifact")
    hashes = {name: h for file in files for name, h in (file.hashes or {}).items()}
    sizes = [(file.path.name, file.size) for file in files]
    header = header_from_metadata(index, firsts[0], [file.layout for file in files], hashes, sizes)
    if {model_id} | {file.layout.metadata.get("model") for file in files} != {header.identity}:
        raise ArtifactError(f"{index}: the index and the shards belong to different models")
    return header


def _check_weight_map(
    index: Path, weight_map: Mapping[str, str], files: Sequence[FileHeader]
) -> None:
    """Raise ArtifactError if the index does not list exactly the tensors of the shards."""
    stored = [(name, file.path.name) for file in files for name in file.layout.tensors]
    wrong = [
        f"{name} is not in {shard}" for name, shard in sorted(weight_map.items() - set(stored))
    ]
    wrong += [
        f"{name} in {shard} is not listed"
        for name, shard in stored
        if weight_map.get(name) != shard
    ]
    if wrong:
        raise ArtifactError(f"{index} does not match its shards: {shorten_list(wrong)}")


def shorten_list(names: list[str], max_names: int = 8) -> str:
    more = f", and {len(names) - max_names} more" if len(names) > max_names else ""
    return ", ".join(ascii(n)[1:-1] for n in names[:max_names]) + more
