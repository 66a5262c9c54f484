"""A model that was changed after composing is saved with its outputs, or the old file is kept."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from artifact_kit import REGISTRY, TIED, Tied
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from zoo.artifact import load, save
from zoo.errors import ArtifactError
from zoo.spec.composition import compose

Change = Callable[[Any], Any]


def logits_of(model: Any, batch: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model.eval()(batch).logits
    return logits


def set_attribute(path: str, value: Callable[[Any], Any]) -> Change:
    """Return a change that replaces an attribute of a part."""

    def change(model: Any) -> None:
        owner, _, name = path.rpartition(".")
        setattr(model.get_submodule(owner), name, value(model))

    return change


def on_output(function: Callable[..., Any], *arguments: Any) -> Change:
    """Return a change that calls a function with the output layer."""

    def change(model: Any) -> None:
        function(model.decoder.out, *arguments)

    return change


def train(model: Any) -> None:
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    model(model.example(2, 5)).logits.sum().backward()
    optimizer.step()


def multiply_output(module: Any, inputs: Any, output: Tensor) -> Tensor:
    return output * 2


def set_shifted_forward(model: Any) -> None:
    table, forward = model.source.table, model.source.table.forward
    table.forward = lambda tokens: forward(tokens) + 1


def nested_list(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def apply(change: Change, model: Any) -> Any:
    """Return what the change returns, or the model that it changed in place."""
    changed = change(model)
    return changed if isinstance(changed, nn.Module) else model


SAVED: dict[str, Change] = {
    "compiled": lambda m: torch.compile(m, backend="eager"),
    "compiled twice": lambda m: torch.compile(torch.compile(m, backend="eager"), backend="eager"),
    "compiled in place": lambda m: m.compile(backend="eager"),
    "compiled encoder": set_attribute(
        "encoder", lambda m: torch.compile(m.encoder, backend="eager")
    ),
    "encoder compiled in place": lambda m: m.encoder.compile(backend="eager"),
    "trained": train,
    "float64": lambda m: m.double(),
    "bfloat16": lambda m: m.bfloat16(),
    "frozen": lambda m: m.requires_grad_(False),
    "copied": copy.deepcopy,
    "pickled": lambda m: pickle.loads(pickle.dumps(m)),
    "same-size output": set_attribute("decoder.out", lambda m: copy.deepcopy(m.decoder.out)),
    "hook without effect": lambda m: m.encoder.register_forward_hook(lambda *_: None),
    "zeroed weights": lambda m: nn.init.zeros_(m.decoder.out.weight),
}
REJECTED: dict[str, tuple[Change, str]] = {
    "larger output": (
        set_attribute("decoder.out", lambda m: nn.Linear(m.decoder.out.in_features, 99)),
        r"shape mismatch: decoder\.out\.weight is \[99, \d+\], expected",
    ),
    "added module": (
        set_attribute("extra", lambda m: nn.Linear(3, 3)),
        r"unexpected: extra\.weight \[3, 3\]",
    ),
    "added buffer": (
        lambda m: m.register_buffer("steps", torch.zeros(2)),
        r"unexpected: steps \[2\]",
    ),
    "removed module": (
        set_attribute("decoder.out", lambda m: nn.Identity()),
        r"missing: decoder\.out\.weight",
    ),
    "weight norm": (
        on_output(parametrizations.weight_norm),
        r"unexpected: decoder\.out\.parametrizations\.weight\.original0",
    ),
    "orthogonal": (
        on_output(parametrizations.orthogonal),
        r"unexpected: decoder\.out\.parametrizations",
    ),
    "pruned": (
        on_output(prune.l1_unstructured, "weight", 0.5),
        r"unexpected: decoder\.out\.weight_orig",
    ),
    "tied": (
        set_attribute("decoder.out.weight", lambda m: m.source.table.weight),
        r"missing: decoder\.out\.weight",
    ),
    "float8": (lambda m: m.to(torch.float8_e4m3fn), r"is F8_E4M3, expected F32"),
    "complex": (
        set_attribute(
            "decoder.out.bias", lambda m: nn.Parameter(m.decoder.out.bias.to(torch.complex64))
        ),
        r"decoder\.out\.bias is C64, expected F32",
    ),
    "complex128": (
        set_attribute(
            "decoder.out.bias",
            lambda m: nn.Parameter(m.decoder.out.bias.to(torch.complex128)),
        ),
        r"decoder\.out\.bias is torch\.complex128, which safetensors cannot store",
    ),
    "sparse": (
        set_attribute(
            "decoder.out.weight", lambda m: nn.Parameter(m.decoder.out.weight.to_sparse())
        ),
        r"decoder\.out\.weight is a Tensor with layout torch\.sparse_coo",
    ),
    "meta": (lambda m: m.to("meta"), "is on the meta device and has no values"),
    "long name": (
        lambda m: m.add_module("x" * 1200, nn.Linear(1, 1)),
        r"the tensor name 'x+' is not printable or is longer than 1,000",
    ),
    "unprintable name": (
        lambda m: m.add_module("a\nb", nn.Linear(1, 1)),
        r"the tensor name 'a\\nb\.bias' is not printable",
    ),
    "surrogate in a name": (
        lambda m: m.add_module("\ud800", nn.Linear(1, 1)),
        "surrogates not allowed",
    ),
    "hook": (
        lambda m: m.source.register_forward_hook(multiply_output),
        r"computes other outputs: logits differs by",
    ),
    "forward": (set_shifted_forward, r"computes other outputs: logits differs by"),
    "data parallel": (nn.DataParallel, "a DataParallel cannot be saved; expected a zoo.Model"),
    "wrapped by compiled": (
        lambda m: torch.compile(nn.Sequential(m), backend="eager"),
        "a Sequential cannot be saved; expected a zoo.Model",
    ),
    "no spec": (set_attribute("spec", lambda m: None), "not composed from a spec"),
    "edited spec": (
        set_attribute("spec", lambda m: {**m.spec, "model": {**m.spec["model"], "x": 1}}),
        "unknown key 'x'",
    ),
    "edited objective": (
        set_attribute("spec", lambda m: {**m.spec, "objective": {"type": 3}}),
        "the spec is not valid",
    ),
    "surrogate in the spec": (
        set_attribute("spec", lambda m: {**m.spec, "name": "\udc00"}),
        r"spec cannot be stored: '\\udc00' is half of a surrogate pair",
    ),
    "spec not JSON": (
        set_attribute("spec", lambda m: {**m.spec, "name": {1, 2}}),
        "spec cannot be stored as JSON: Object of type set",
    ),
    "no providers": (set_attribute("providers", lambda m: ()), "the list of providers"),
    "another version": (
        set_attribute("providers", lambda m: tuple({**row, "version": 99} for row in m.providers)),
        "saved with version 99 of",
    ),
    "tokenizer of another type": (
        set_attribute("tokenizer", lambda m: {"source": 3}),
        "'tokenizer' in the header is not valid",
    ),
}
PROVENANCE: dict[str, tuple[Any, str]] = {
    "object": ({"data": object()}, "provenance cannot be stored as JSON"),
    "not a number": ({"loss": float("nan")}, "provenance cannot be stored as JSON"),
    "surrogate": ({"author": "\ud83d"}, r"provenance cannot be stored: '\\ud83d' is half of a"),
    "surrogate in a key": ({"\ud83d": 1}, r"provenance cannot be stored: '\\ud83d' is half of a"),
    "repeated key": ({"seeds": {1: 2, "1": 3}}, "the key '1' is repeated"),
    "deep": ({"deep": nested_list(20_000)}, "provenance cannot be stored as JSON"),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A good file, which a rejected model must not replace."""
    return save(compose("bahdanau-reversal", seed=1), tmp_path / "model.safetensors")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}


@pytest.mark.parametrize("name", SAVED)
def test_loaded_model_has_the_outputs_of_the_saved_one(file: Path, name: str) -> None:
    model: Any = compose("bahdanau-reversal", seed=2)
    changed = apply(SAVED[name], model)
    save(changed, file)
    again = load(file, verify=True)
    batch = model.example(2, 5, torch.Generator().manual_seed(1))
    expected, found = logits_of(changed, batch), logits_of(again, batch)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", REJECTED)
def test_rejected_model_leaves_the_old_file(file: Path, name: str) -> None:
    before = contents(file.parent)
    change, message = REJECTED[name]
    with pytest.raises(ArtifactError, match=message):
        save(apply(change, compose("bahdanau-reversal", seed=2)), file)
    assert contents(file.parent) == before


@pytest.mark.parametrize("name", ["larger output", "float8", "long name", "hook"])
def test_rejected_model_leaves_the_old_shards(file: Path, name: str) -> None:
    folder = save(load(file), file.parent / "shards", shard_bytes=20_000)
    before = contents(folder)
    change, message = REJECTED[name]
    with pytest.raises(ArtifactError, match=message):
        save(apply(change, compose("bahdanau-reversal", seed=2)), folder, shard_bytes=20_000)
    assert contents(folder) == before


def test_changed_buffer_that_is_not_stored_leaves_the_old_file(tmp_path: Path) -> None:
    model: Any = compose(TIED, registry=REGISTRY)
    file = save(model, tmp_path / "model.safetensors")
    before = contents(tmp_path)
    model.offset.add_(1)
    with pytest.raises(ArtifactError, match="computes other outputs: logits differs by"):
        save(model, file)
    assert contents(tmp_path) == before


class ManyParts(Tied):
    """A model with more tensors than an artifact may have shards."""

    name: ClassVar[str] = "kit-many"

    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(1)) for _ in range(1100))


def test_too_many_shards_leave_the_old_ones(tmp_path: Path) -> None:
    registry = REGISTRY.with_components([ManyParts], plugin="kit")
    model = compose({**TIED, "model": "kit-many"}, registry=registry)
    folder = save(model, tmp_path / "shards", shard_bytes=180)
    before = contents(tmp_path)
    assert len(before) > 2
    with pytest.raises(ArtifactError, match=r"would have 1,102 shards; at most 1,000 are allowed"):
        save(model, folder, shard_bytes=1)
    assert contents(tmp_path) == before


def test_index_that_is_too_large_to_be_read_leaves_the_old_shards(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save(load(file), file.parent / "shards", shard_bytes=20_000)
    before = contents(folder)
    monkeypatch.setattr("zoo.artifact.atomic_write.MAX_HEADER", 100)
    with pytest.raises(ArtifactError, match=r"index would have .* bytes; at most 100 are allowed"):
        save(compose("bahdanau-reversal", seed=2), folder, shard_bytes=20_000)
    assert contents(folder) == before


@pytest.mark.parametrize("name", PROVENANCE)
def test_provenance_that_could_not_be_read_leaves_the_old_file(file: Path, name: str) -> None:
    before = contents(file.parent)
    provenance, message = PROVENANCE[name]
    with pytest.raises(ArtifactError, match=message):
        save(compose("bahdanau-reversal"), file, provenance=provenance)
    assert contents(file.parent) == before
