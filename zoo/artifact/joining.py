"""What the files of an artifact say, put together and checked against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from zoo.artifact.header import Header, read_words
from zoo.artifact.layout import MAX_TENSORS, Layout
from zoo.errors import ArtifactError, shortened


class Heading(Protocol):
    """What one file of an artifact says, whether or not its weights are here."""

    path: Path
    size: int
    layout: Layout
    hashes: dict[str, str] | None


def header_of_one(file: Heading) -> Header:
    """The header of a model in one file."""
    words = file.layout.metadata
    if "shard" in words:
        raise ArtifactError(
            f"{file.path} is shard {shortened(words['shard'], 20)} of a model; "
            "name the directory or its index instead"
        )
    files = [(file.path.name, file.size)]
    return read_words(file.path, words, [file.layout], file.hashes, files)


def header_of_shards(
    index: Path, owners: Mapping[str, str], told: str | None, files: Sequence[Heading]
) -> Header:
    """The header of a model in several, which have to be what the index says."""
    if sum(len(file.layout.tensors) for file in files) > MAX_TENSORS:
        raise ArtifactError(f"{index} lists more than {MAX_TENSORS:,} tensors")
    _check_owners(index, owners, files)
    firsts = [file.layout.metadata for file in files if "spec" in file.layout.metadata]
    numbers = sorted(file.layout.metadata.get("shard", "") for file in files)
    if len(firsts) != 1 or numbers != sorted(f"{n + 1}/{len(files)}" for n in range(len(files))):
        raise ArtifactError(f"{index}: its shards are not the parts of one model of the zoo")
    hashes = {name: h for file in files for name, h in (file.hashes or {}).items()}
    sizes = [(file.path.name, file.size) for file in files]
    header = read_words(index, firsts[0], [file.layout for file in files], hashes, sizes)
    if {told} | {file.layout.metadata.get("model") for file in files} != {header.identity}:
        raise ArtifactError(f"{index}: its shards do not belong together, or not to this index")
    return header


def _check_owners(index: Path, owners: Mapping[str, str], files: Sequence[Heading]) -> None:
    """Refuse an index that places a tensor where it is not."""
    held = [(name, file.path.name) for file in files for name in file.layout.tensors]
    wrong = [f"{name} is not in {shard}" for name, shard in sorted(owners.items() - set(held))]
    wrong += [
        f"{name} in {shard} is not listed" for name, shard in held if owners.get(name) != shard
    ]
    if wrong:
        raise ArtifactError(f"{index} does not say what its shards hold: {few(wrong)}")


def few(names: list[str], most: int = 8) -> str:
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(ascii(n)[1:-1] for n in names[:most]) + more
