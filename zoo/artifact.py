"""Models on disk: one safetensors file with weights, resolved spec and lock.

Nothing in a file is executed: names in its header are looked up in the registry, weights are
plain numbers. A file is replaced whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from zoo.about import version
from zoo.composition import build_on_meta, claimed, torch_device
from zoo.errors import ArtifactError, RegistryError, SpecError
from zoo.files import reason, replacing
from zoo.interfaces import Model
from zoo.registry import Registry, default_registry
from zoo.spec import Spec, load_spec

FORMAT = "1"
_SHOWN = 8


@dataclass(frozen=True)
class Header:
    """What a model file says of itself."""

    path: Path
    spec: dict[str, Any]
    lock: list[dict[str, Any]]
    provenance: dict[str, Any]
    tokenizer: dict[str, str]
    tensors: dict[str, tuple[str, tuple[int, ...]]]

    def as_json(self) -> dict[str, Any]:
        return {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            "spec": self.spec,
            "lock": self.lock,
            "provenance": self.provenance,
            "tokenizer": sorted(self.tokenizer),
            "tensors": [
                {"name": name, "dtype": dtype, "shape": list(shape)}
                for name, (dtype, shape) in self.tensors.items()
            ],
        }


def save(
    model: Model, path: str | os.PathLike[str], *, provenance: Mapping[str, Any] | None = None
) -> Path:
    """Write the model to one file; whatever happens, the old or the new one is there, whole."""
    if model.spec is None:
        raise ArtifactError(
            "this model was not composed from a spec, so a file could not say what it is"
        )
    try:
        about = json.dumps(
            {"zoo": version(), "torch": str(torch.__version__), **(provenance or {})}
        )
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"provenance holds what JSON cannot: {error}") from None
    metadata = {
        "format": "pt",
        "zoo": FORMAT,
        "spec": json.dumps(model.spec),
        "lock": json.dumps(list(model.lock)),
        "provenance": about,
    }
    if model.tokenizer:
        metadata["tokenizer"] = json.dumps(dict(model.tokenizer))
    target = Path(path)
    tensors = _apart(held_tensors(model))
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise ArtifactError(
                f"{path} is a directory; name the file, for example {path}/model.safetensors"
            )
        with replacing(target) as beside:
            save_file(tensors, beside, metadata)
    except (OSError, ValueError, SafetensorError) as error:
        kept = "; the file that was there is unchanged" if os.path.exists(target) else ""
        raise ArtifactError(f"{path} could not be written: {reason(error)}{kept}") from error
    return target


def load(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    registry: Registry | None = None,
) -> Model:
    """The model in a file, with its weights bit for bit; refused if anything does not fit."""
    place = torch_device(device)
    # Opened once: the file may be replaced while it is read.
    with _opened(path, place) as file:
        header = _header(path, file)
        spec = _spec_of(header, registry or default_registry())
        try:
            model: Model = build_on_meta(spec).part
        except SpecError as error:
            raise ArtifactError(f"{path}: its spec does not hold here:\n{error}") from None
        expected = held_tensors(model)
        _compare(header, expected)
        loaded = {name: file.get_tensor(name) for name in expected}
    _fill(model, loaded)
    _fill(model, _computed_buffers(model, spec, device))
    model.tokenizer = header.tokenizer or None
    return claimed(model, spec)


def read_header(path: str | os.PathLike[str]) -> Header:
    """Everything in a model file but the weights."""
    with _opened(path, torch.device("cpu")) as file:
        return _header(path, file)


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str], device: torch.device) -> Iterator[Any]:
    if os.path.isdir(path):
        raise ArtifactError(f"{path} is a directory, not a model file")
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            yield file
    except (OSError, SafetensorError) as error:
        raise ArtifactError(f"{path} is no readable safetensors file: {reason(error)}") from None


def _header(path: str | os.PathLike[str], file: Any) -> Header:
    metadata = file.metadata() or {}
    slices = {name: file.get_slice(name) for name in sorted(file.keys())}
    tensors = {n: (s.get_dtype(), tuple(s.get_shape())) for n, s in slices.items()}
    if metadata.get("zoo") != FORMAT:
        found = f"is of format {metadata['zoo']}" if "zoo" in metadata else "holds no spec"
        raise ArtifactError(
            f"{path} {found}; the zoo reads format {FORMAT}, as written by zoo.save"
        )
    try:
        spec, lock = json.loads(metadata["spec"]), json.loads(metadata["lock"])
        provenance = json.loads(metadata.get("provenance", "{}"))
        tokenizer = json.loads(metadata.get("tokenizer", "{}"))
    except (KeyError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{path}: the header's spec or lock cannot be read: {error}") from None
    rows = isinstance(lock, list) and all(_is_row(row) for row in lock)
    dicts = all(isinstance(part, dict) for part in (spec, provenance, tokenizer))
    if not dicts or not rows or not all(isinstance(text, str) for text in tokenizer.values()):
        raise ArtifactError(f"{path}: the header's spec, lock or provenance has not the right form")
    if "extends" in spec:
        raise ArtifactError(
            f"{path}: the header's spec builds on another; a saved spec is complete"
        )
    return Header(Path(path), spec, lock, provenance, tokenizer, tensors)


def _is_row(row: Any) -> bool:
    words = ("kind", "name", "plugin", "distribution", "distribution_version")
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(word), str) for word in words)
        and type(row.get("version")) is int
    )


def held_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers by name; what several places share counts once."""
    held: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            held[name] = tensor
    return held


def _spec_of(header: Header, registry: Registry) -> Spec:
    for row in header.lock:
        reference = f"{row.get('plugin')}:{row.get('name')}"
        try:
            entry = registry.get(str(row.get("kind")), reference)
        except RegistryError as error:
            raise ArtifactError(
                f"{header.path} needs {row.get('kind')} '{row.get('name')}' of plugin "
                f"'{row.get('plugin')}'; install it with: pip install "
                f"'{row.get('distribution')}=={row.get('distribution_version')}' ({error})"
            ) from None
        if entry.cls.version != row.get("version"):
            raise ArtifactError(
                f"{header.path} was made with version {row.get('version')} of {entry.kind} "
                f"'{entry.name}', but distribution {entry.distribution} "
                f"{entry.distribution_version} has version {entry.cls.version}; install "
                f"'{row.get('distribution')}=={row.get('distribution_version')}'"
            )
    try:
        spec = load_spec(header.spec, registry=registry)
    except SpecError as error:
        raise ArtifactError(f"{header.path}: its spec does not hold here:\n{error}") from None
    listed = {(row["kind"], row["plugin"], row["name"]) for row in header.lock}
    for row in spec.lock():
        if (row["kind"], row["plugin"], row["name"]) not in listed:
            raise ArtifactError(
                f"{header.path}: its lock does not list {row['kind']} '{row['name']}', "
                "which its spec uses"
            )
    return spec


def _compare(header: Header, expected: Mapping[str, Tensor]) -> None:
    """Refuse a file whose tensors are not exactly the model's, and list the differences."""
    wrong = [
        f"missing: {name} {list(expected[name].shape)}"
        for name in expected
        if name not in header.tensors
    ]
    wrong += [
        f"surplus: {name} {list(shape)}"
        for name, (_, shape) in header.tensors.items()
        if name not in expected
    ]
    for name, tensor in expected.items():
        if name not in header.tensors:
            continue
        dtype, shape = header.tensors[name]
        if not _fits(tensor.dtype, dtype):
            wrong.append(f"wrong dtype: {name} is {dtype}, should be like {tensor.dtype}")
        if shape != tuple(tensor.shape):
            wrong.append(f"misshapen: {name} is {list(shape)}, should be {list(tensor.shape)}")
    if wrong:
        more = f"\n  and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        listed = "".join(f"\n  {line}" for line in wrong[:_SHOWN])
        raise ArtifactError(f"{header.path} does not hold the weights of its spec:{listed}{more}")


def _fits(expected: torch.dtype, found: str) -> bool:
    """A float may be stored in any float's precision; all else is what it is."""
    if expected.is_floating_point:
        return found in ("F64", "F32", "F16", "BF16")
    names = {torch.bool: "BOOL", torch.uint8: "U8", torch.complex64: "C64"}
    return found == names.get(expected, f"I{expected.itemsize * 8}")


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Each tensor in memory of its own, copied only if it overlaps with another."""
    taken: set[int] = set()
    apart = {}
    for name, tensor in tensors.items():
        whole = tensor.detach().contiguous()
        if whole.untyped_storage().data_ptr() in taken:
            whole = whole.clone()
        taken.add(whole.untyped_storage().data_ptr())
        apart[name] = whole
    return apart


def _fill(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put the tensors in place without copying; what is shared is filled everywhere at once."""
    state = dict(model.state_dict(keep_vars=True)) | dict(model.named_buffers())
    fresh: dict[int, Tensor] = {}
    for name, tensor in tensors.items():
        old = state[name]
        keeps = isinstance(old, nn.Parameter)
        fresh[id(old)] = nn.Parameter(tensor, requires_grad=old.requires_grad) if keeps else tensor
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for key, value in table.items():
                if value is not None and id(value) in fresh:
                    table[key] = fresh[id(value)]  # type: ignore[assignment]


def _computed_buffers(model: Model, spec: Spec, device: str | torch.device) -> dict[str, Tensor]:
    """Buffers that no file holds, because the constructor computes them."""
    absent = [name for name, buffer in model.named_buffers() if buffer.is_meta]
    if not absent:
        return {}
    with torch.random.fork_rng(devices=[]):
        real = dict(spec.sections.model.build().named_buffers())
    dtypes = [p.dtype for p in model.parameters() if p.is_floating_point()]
    return {
        name: real[name].to(
            device, dtypes[0] if dtypes and real[name].is_floating_point() else None
        )
        for name in absent
    }
