"""Headers of files that are elsewhere, read from the first bytes of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from zoo.artifact.header import Header, check_digest, read_hashes
from zoo.artifact.joining import header_of_one, header_of_shards
from zoo.artifact.layout import Malformed, decoded
from zoo.artifact.reading import File, read_index
from zoo.errors import ArtifactError

_FIRST = 1 << 16
"""Bytes that hold most headers."""


class Beginning(File):
    """A file of which only the header is here; it has no tensors to give."""

    def __init__(self, path: Path, size: int, first: Callable[[int], bytes]) -> None:
        self.path, self.size = path, size
        try:
            head = first(min(_FIRST, size))
            self._begin = 8 + self._length(head[:8])
            if self._begin > len(head):
                head = first(self._begin)
            self.layout = decoded(head[8 : self._begin], size - self._begin)
        except Malformed as error:
            raise ArtifactError(f"{path} is no readable safetensors file: {error}") from None
        check_digest(path, self.layout)
        self.hashes = read_hashes(path, self.layout)


def header_elsewhere(files: Sequence[Beginning], index: Path | None = None) -> Header:
    """The header of a model, of which an index is here if it has one."""
    if index is None:
        return header_of_one(files[0])
    return header_of_shards(index, *read_index(index), files)
