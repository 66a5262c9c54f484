"""The header of an artifact, built from the headers of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from zoo.artifact.header import Header, header_from_metadata
from zoo.artifact.layout import MAX_TENSORS, Layout
from zoo.errors import ArtifactError, truncate


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
