"""What the files of an artifact say, put together and checked against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from zoo.artifact.header import Header, header_from_metadata
from zoo.artifact.layout import MAX_TENSORS, Layout
from zoo.errors import ArtifactError, truncate


class FileHeader(Protocol):
    """What one file of an artifact says, whether or not its weights are here."""

    path: Path
    size: int
    layout: Layout
    hashes: dict[str, str] | None


def header_from_file(file: FileHeader) -> Header:
    """The header of a model in one file."""
    metadata = file.layout.metadata
    if "shard" in metadata:
        raise ArtifactError(
            f"{file.path} is shard {truncate(metadata['shard'], 20)} of a model; "
            "name the directory or its index instead"
        )
    files = [(file.path.name, file.size)]
    return header_from_metadata(file.path, metadata, [file.layout], file.hashes, files)


def header_from_shards(
    index: Path, weight_map: Mapping[str, str], told: str | None, files: Sequence[FileHeader]
) -> Header:
    """The header of a model in several, which have to be what the index says."""
    if sum(len(file.layout.tensors) for file in files) > MAX_TENSORS:
        raise ArtifactError(f"{index} lists more than {MAX_TENSORS:,} tensors")
    _check_weight_map(index, weight_map, files)
    firsts = [file.layout.metadata for file in files if "spec" in file.layout.metadata]
    numbers = sorted(file.layout.metadata.get("shard", "") for file in files)
    if len(firsts) != 1 or numbers != sorted(f"{n + 1}/{len(files)}" for n in range(len(files))):
        raise ArtifactError(f"{index}: its shards are not the parts of one model of the zoo")
    hashes = {name: h for file in files for name, h in (file.hashes or {}).items()}
    sizes = [(file.path.name, file.size) for file in files]
    header = header_from_metadata(index, firsts[0], [file.layout for file in files], hashes, sizes)
    if {told} | {file.layout.metadata.get("model") for file in files} != {header.identity}:
        raise ArtifactError(f"{index}: its shards do not belong together, or not to this index")
    return header


def _check_weight_map(
    index: Path, weight_map: Mapping[str, str], files: Sequence[FileHeader]
) -> None:
    """Refuse an index that places a tensor where it is not."""
    held = [(name, file.path.name) for file in files for name in file.layout.tensors]
    wrong = [f"{name} is not in {shard}" for name, shard in sorted(weight_map.items() - set(held))]
    wrong += [
        f"{name} in {shard} is not listed" for name, shard in held if weight_map.get(name) != shard
    ]
    if wrong:
        raise ArtifactError(f"{index} does not say what its shards hold: {shorten_list(wrong)}")


def shorten_list(names: list[str], limit: int = 8) -> str:
    more = f", and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(ascii(n)[1:-1] for n in names[:limit]) + more
