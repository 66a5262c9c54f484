"""Artifacts opened: each file once, mapped into memory, its header checked before its weights."""

from __future__ import annotations

import mmap
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.artifact.header import Header, check_digest, read_hashes
from zoo.artifact.header_builder import header_from_file, header_from_shards, shorten_list
from zoo.artifact.layout import (
    DTYPES,
    MAX_HEADER,
    InvalidSafetensorsError,
    Layout,
    StoredTensor,
    decode_header,
    parse_json,
)
from zoo.errors import ArtifactError
from zoo.files import os_error_message

SINGLE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_SHARDS = 1_000

_SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}\.safetensors")
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_MAX_RETRIES = 50


def header_length(head: bytes, size: int) -> int:
    """How long the header is of a file of that size that begins so."""
    length = int.from_bytes(head[:8], "little")
    # A sound header may have a length whose bytes look like a pickle's, as 640 has.
    if head.startswith(_PICKLES) and length > min(size - 8, MAX_HEADER):
        raise InvalidSafetensorsError(
            "it is a pickle, as torch.save writes, which can run code when opened"
        )
    if len(head) < 8 or length > size - 8:
        raise InvalidSafetensorsError("it ends before its header does")
    if length > MAX_HEADER:
        raise InvalidSafetensorsError(f"its header has {length:,} bytes, more than {MAX_HEADER:,}")
    return length


class MappedFile:
    """A safetensors file of any maker, its header bounded and checked, its weights mapped into
    memory: tensors share its pages until someone writes to them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise InvalidSafetensorsError("it is no regular file")
            with open(path, "rb") as file:
                self.size = os.fstat(file.fileno()).st_size
                self._begin = 8 + header_length(file.read(8), self.size)
                header = file.read(self._begin - 8)
                # Private pages: whoever trains the model does not write to the file.
                self._map = mmap.mmap(file.fileno(), self.size, access=mmap.ACCESS_COPY)
            self.layout: Layout = decode_header(header, self.size - self._begin)
        except (OSError, ValueError) as error:
            raise ArtifactError(
                f"{path} is no readable safetensors file: {os_error_message(error)}"
            ) from None

    def raw(self, name: str) -> memoryview:
        stored = self.layout.tensors[name]
        return memoryview(self._map)[self._begin + stored.begin : self._begin + stored.end]

    def tensor(self, name: str) -> Tensor:
        """The tensor as it lies in the file, without a copy."""
        stored: StoredTensor = self.layout.tensors[name]
        dtype = DTYPES[stored.dtype]
        if stored.begin == stored.end:
            return torch.empty(stored.shape, dtype=dtype)
        at, count = self._begin + stored.begin, stored.end - stored.begin
        if at % dtype.itemsize:  # other writers do not always align
            loose = torch.frombuffer(self._map, dtype=torch.uint8, count=count, offset=at)
            return loose.clone().view(dtype).view(stored.shape)
        count //= dtype.itemsize
        return torch.frombuffer(self._map, dtype=dtype, count=count, offset=at).view(stored.shape)


class ArtifactFile(MappedFile):
    """One file of an artifact, its header as the zoo wrote it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        check_digest(path, self.layout)
        self.hashes = read_hashes(path, self.layout)


@dataclass(frozen=True)
class Artifact(Mapping[str, Tensor]):
    """An opened artifact: its header, and its tensors by name."""

    header: Header
    files: tuple[ArtifactFile, ...]
    file_of: Mapping[str, ArtifactFile]

    def __getitem__(self, name: str) -> Tensor:
        return self.file_of[name].tensor(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.file_of)

    def __len__(self) -> int:
        return len(self.file_of)


def open_artifact(path: str | os.PathLike[str]) -> Artifact:
    """The artifact at a path: a file, a directory with one, or the index of its shards."""
    place = resolve_path(path)
    if place.name.endswith(".json"):
        return _retry_while_replaced(place, lambda: _open_shards(place))
    file = ArtifactFile(place)
    return Artifact(header_from_file(file), (file,), dict.fromkeys(file.layout.tensors, file))


def resolve_path(path: str | os.PathLike[str]) -> Path:
    """The one file, or the index, that a path means."""
    place = Path(path)
    if not os.path.isdir(place):
        return place
    for name in (SINGLE_FILE, INDEX):
        if os.path.lexists(place / name):
            return place / name
    raise ArtifactError(
        f"{path} is a directory without {SINGLE_FILE} or {INDEX}, so it holds no model"
    )


def _retry_while_replaced(index: Path, attempt: Callable[[], Artifact]) -> Artifact:
    """Try again while somebody else is swapping the shards under our hands."""
    for number in range(_MAX_RETRIES):
        before = _file_state(index)
        try:
            return attempt()
        except ArtifactError:
            if _file_state(index) == before:
                raise
        time.sleep(number / 1000)
    return attempt()


def _file_state(index: Path) -> tuple[int, ...] | None:
    """Which of the files that ever had this name it is: one swapped in again counts as another."""
    try:
        seen = os.stat(index)
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _open_shards(index: Path) -> Artifact:
    weight_map, told = read_index(index)
    names = sorted(set(weight_map.values()))
    absent = [name for name in names if not os.path.exists(index.parent / name)]
    if absent:
        raise ArtifactError(f"{index} names shards that are not there: {shorten_list(absent)}")
    files = tuple(ArtifactFile(index.parent / name) for name in names)
    header = header_from_shards(index, weight_map, told, files)
    file_of = {name: file for file in files for name in file.layout.tensors}
    return Artifact(header, files, file_of)


def read_index(index: Path) -> tuple[dict[str, str], str | None]:
    """Which shard holds each tensor, and the identity of the model they make."""
    try:
        data: Any = parse_json(_read_text(index))
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{index} is no readable index: {error}") from None
    weight_map = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise ArtifactError(f"{index} is no readable index: it has no weight_map")
    strange = [n for n in weight_map.values() if not isinstance(n, str) or not _SHARD.fullmatch(n)]
    if strange:
        raise ArtifactError(
            f"{index} names {ascii(strange[0])[:80]}, which is no file of its own directory"
        )
    if len(set(weight_map.values())) > MAX_SHARDS:
        raise ArtifactError(f"{index} names more than {MAX_SHARDS:,} shards")
    about = data.get("metadata")
    told = about.get("model") if isinstance(about, dict) else None
    return weight_map, told if isinstance(told, str) else None


def _read_text(index: Path) -> str:
    try:
        if not stat.S_ISREG(os.stat(index).st_mode):
            raise ValueError("it is no regular file")
        with open(index, "rb") as file:
            content = file.read(MAX_HEADER + 1)
        if len(content) > MAX_HEADER:
            raise ValueError(f"it has more than {MAX_HEADER:,} bytes")
        return content.decode()
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{index} is no readable index: {os_error_message(error)}") from None
