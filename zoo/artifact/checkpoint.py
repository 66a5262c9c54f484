"""Safetensors files of any library, read and written one tensor at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from torch import Tensor

from zoo.artifact.layout import DTYPES, MAX_TENSORS, Layout, layout_tensors, tensor_bytes
from zoo.artifact.mapped_file import MappedFile
from zoo.errors import ArtifactError
from zoo.interfaces.tensors import TensorMeta, TensorReader


def open_tensors(paths: Sequence[Path]) -> TensorReader:
    """Return a reader of the tensors in one or more files, such as the shards of a checkpoint.

    Each tensor that is read is a copy, so that the memory of the files is never mapped as a whole.
    """
    return tensor_reader([MappedFile(path) for path in paths], copy=True)


def tensor_reader(mapped: Sequence[MappedFile], *, copy: bool = False) -> TensorReader:
    """Return a reader of the tensors in one or more open files."""
    files: dict[str, MappedFile] = {}
    for file in mapped:
        for name in file.layout.tensors:
            if name in files:
                raise ArtifactError(
                    f"{file.path}: tensor '{name}' is also in {files[name].path.name}"
                )
            files[name] = file
    if len(files) > MAX_TENSORS:
        folder = mapped[0].path.parent
        raise ArtifactError(f"{folder} contains more than {MAX_TENSORS:,} tensors")
    stored = {name: files[name].layout.tensors[name] for name in sorted(files)}
    metas = {name: TensorMeta(one.shape, DTYPES[one.dtype]) for name, one in stored.items()}
    if copy:
        return TensorReader(metas, lambda name: files[name].read(name))
    return TensorReader(metas, lambda name: files[name].tensor(name))


def write_tensors(
    path: Path, metas: Mapping[str, TensorMeta], tensors: Iterable[tuple[str, Tensor]]
) -> None:
    """Write tensors to a file as they are produced, in any order."""
    table = layout_tensors({name: meta.empty() for name, meta in metas.items()})
    header = Layout({"format": "pt"}, table).encode()
    with open(path, "wb") as file:
        file.write(header)
        for name, tensor in tensors:
            assert TensorMeta.of(tensor) == metas[name], name
            file.seek(len(header) + table[name].begin)
            file.write(tensor_bytes(tensor))
