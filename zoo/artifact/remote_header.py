"""Headers of remote files, read from the first bytes of each file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from zoo.artifact.header import (
    Header,
    check_digest,
    header_from_file,
    header_from_shards,
    read_hashes,
)
from zoo.artifact.layout import InvalidSafetensorsError, Layout, decode_header
from zoo.artifact.mapped_file import header_length, read_index
from zoo.errors import ArtifactError

_PREFIX_BYTES = 1 << 16
"""Size of the first request; most headers are smaller."""


class RemoteFile:
    """The header of a remote file, or of one that is not written yet, without its tensors.

    Args:
        read_prefix: returns the first bytes of the file, as many as it is called with.
    """

    def __init__(self, path: Path, size: int, read_prefix: Callable[[int], bytes]) -> None:
        self.path, self.size = path, size
        try:
            head = read_prefix(min(_PREFIX_BYTES, size))
            begin = 8 + header_length(head, size)
            if begin > len(head):
                head = read_prefix(begin)
            self.layout: Layout = decode_header(head[8:begin], size - begin)
        except InvalidSafetensorsError as error:
            raise ArtifactError(f"{path} is not a valid safetensors file: {error}") from None
        check_digest(path, self.layout)
        self.hashes = read_hashes(path, self.layout)


def read_remote_header(files: Sequence[RemoteFile], index: Path | None = None) -> Header:
    """Return the header of a remote model; `index` is the local copy of its index, if any."""
    if index is None:
        return header_from_file(files[0])
    return header_from_shards(index, *read_index(index), files)
