"""Headers of files that are elsewhere, read from the first bytes of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from zoo.artifact.header import Header, check_digest, read_hashes
from zoo.artifact.joining import header_of_one, header_of_shards
from zoo.artifact.layout import Layout, Malformed, decoded
from zoo.artifact.mapped_file import header_length, read_index
from zoo.errors import ArtifactError

_FIRST = 1 << 16
"""Bytes that hold most headers."""


class Beginning:
    """A file of which only the header is here; it has no tensors to give."""

    def __init__(self, path: Path, size: int, first: Callable[[int], bytes]) -> None:
        self.path, self.size = path, size
        try:
            head = first(min(_FIRST, size))
            begin = 8 + header_length(head, size)
            if begin > len(head):
                head = first(begin)
            self.layout: Layout = decoded(head[8:begin], size - begin)
        except Malformed as error:
            raise ArtifactError(f"{path} is no readable safetensors file: {error}") from None
        check_digest(path, self.layout)
        self.hashes = read_hashes(path, self.layout)


def header_elsewhere(files: Sequence[Beginning], index: Path | None = None) -> Header:
    """The header of a model, of which an index is here if it has one."""
    if index is None:
        return header_of_one(files[0])
    return header_of_shards(index, *read_index(index), files)
