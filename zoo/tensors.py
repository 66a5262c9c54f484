"""Safetensors files read and written tensor by tensor, so that size costs no memory."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from zoo.errors import ArtifactError
from zoo.files import reason, replacing

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_CODES = {dtype: code for code, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Form:
    """What is known of a tensor before it is read."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> Form:
        return cls(tuple(tensor.shape), tensor.dtype)

    @property
    def bytes(self) -> int:
        size = self.dtype.itemsize
        for dimension in self.shape:
            size *= dimension
        return size


@dataclass(frozen=True)
class Opened:
    """Tensors of one or more files: their forms at once, each of them when asked for."""

    forms: Mapping[str, Form]
    read: Callable[[str], Tensor]


@contextlib.contextmanager
def opened(paths: Sequence[Path]) -> Iterator[Opened]:
    """The tensors of safetensors files, as of a checkpoint in shards."""
    with contextlib.ExitStack() as stack:
        files: dict[str, Any] = {}
        forms: dict[str, Form] = {}
        for path in paths:
            try:
                file = stack.enter_context(safe_open(path, framework="pt"))
                for name in file.keys():  # noqa: SIM118, no dict
                    if name in files:
                        raise ArtifactError(f"{path}: tensor '{name}' is in another file as well")
                    files[name] = file
                    forms[name] = _form(path, name, file.get_slice(name))
            except (OSError, SafetensorError) as error:
                raise ArtifactError(
                    f"{path} is no readable safetensors file: {reason(error)}"
                ) from None
        yield Opened(dict(sorted(forms.items())), lambda name: files[name].get_tensor(name))


def _form(path: Path, name: str, piece: Any) -> Form:
    code = piece.get_dtype()
    if code not in DTYPES:
        raise ArtifactError(f"{path}: tensor '{name}' has type {code}, which the zoo cannot read")
    return Form(tuple(piece.get_shape()), DTYPES[code])


def write_stream(
    path: str | os.PathLike[str],
    forms: Mapping[str, Form],
    tensors: Iterable[tuple[str, Tensor]],
    metadata: Mapping[str, str],
) -> Path:
    """Write tensors as they come, in any order; the file is replaced whole or not at all."""
    target = Path(os.path.realpath(path))
    # Wide types first keeps every tensor aligned, as the safetensors library does.
    order = sorted(forms, key=lambda name: (-forms[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    offsets, end = {}, 0
    for name in order:
        form = forms[name]
        offsets[name], start, end = end, end, end + form.bytes
        header[name] = {
            "dtype": _CODES[form.dtype],
            "shape": list(form.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with replacing(target) as beside, open(beside, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        base = file.tell()
        file.truncate(base + end)
        for name, tensor in tensors:
            assert Form.of(tensor) == forms[name], name
            file.seek(base + offsets[name])
            file.write(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return target
