"""Safetensors of any maker, read and written tensor by tensor, so that size costs no memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from zoo.artifact.layout import DTYPES, Layout, arranged
from zoo.errors import ArtifactError
from zoo.files import reason
from zoo.tensors import Form, Opened


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
    path: Path, forms: Mapping[str, Form], tensors: Iterable[tuple[str, Tensor]]
) -> None:
    """Write tensors as they come, in any order."""
    table = arranged({name: form.empty() for name, form in forms.items()})
    header = Layout({"format": "pt"}, table).encoded()
    with open(path, "wb") as file:
        file.write(header)
        for name, tensor in tensors:
            assert Form.of(tensor) == forms[name], name
            file.seek(len(header) + table[name].begin)
            file.write(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
