"""Safetensors of any maker, read and written tensor by tensor, so that size costs no memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from zoo.artifact.layout import DTYPES, MAX_TENSORS, Layout, layout_tensors
from zoo.artifact.mapped_file import MappedFile
from zoo.errors import ArtifactError
from zoo.interfaces.tensors import TensorMeta, TensorReader


def open_tensors(paths: Sequence[Path]) -> TensorReader:
    """The tensors of safetensors files, as of a checkpoint in shards."""
    files: dict[str, MappedFile] = {}
    for path in paths:
        file = MappedFile(path)
        for name in file.layout.tensors:
            if name in files:
                raise ArtifactError(f"{path}: tensor '{name}' is in another file as well")
            files[name] = file
    if len(files) > MAX_TENSORS:
        raise ArtifactError(f"{paths[0].parent} holds more than {MAX_TENSORS:,} tensors")
    stored = {name: files[name].layout.tensors[name] for name in sorted(files)}
    metas = {name: TensorMeta(one.shape, DTYPES[one.dtype]) for name, one in stored.items()}
    return TensorReader(metas, lambda name: files[name].tensor(name))


def write_tensors(
    path: Path, metas: Mapping[str, TensorMeta], tensors: Iterable[tuple[str, Tensor]]
) -> None:
    """Write tensors as they come, in any order."""
    table = layout_tensors({name: meta.empty() for name, meta in metas.items()})
    header = Layout({"format": "pt"}, table).encode()
    with open(path, "wb") as file:
        file.write(header)
        for name, tensor in tensors:
            assert TensorMeta.of(tensor) == metas[name], name
            file.seek(len(header) + table[name].begin)
            file.write(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
