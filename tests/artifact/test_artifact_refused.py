"""Invalid files and paths raise ArtifactError with a helpful message."""

from __future__ import annotations

import json
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from artifact_kit import REGISTRY, TIED, Tied, TiedV2, all_tensors, assert_same_bits, rewrite
from plugin_kit import Site, scorer
from torch import Tensor

from zoo.artifact import load, save
from zoo.errors import ArtifactError, ZooError
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.composition import compose
from zoo_bahdanau.additive import Additive


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A valid file of the tied model."""
    return save(compose(TIED, registry=REGISTRY), tmp_path / "model.safetensors")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site", monkeypatch)


@pytest.mark.parametrize(
    ("change", "listed"),
    [
        (lambda t: t.pop("read.weight"), ["missing: read.weight [11, 4]"]),
        (lambda t: t.update(extra=torch.ones(2)), ["unexpected: extra [2]"]),
        (
            lambda t: t.update({"read.weight": torch.ones(4, 11)}),
            ["shape mismatch: read.weight is [4, 11], expected [11, 4]"],
        ),
        (
            lambda t: t.update({"read.weight": torch.ones(11, 4, dtype=torch.int64)}),
            ["dtype mismatch: read.weight is I64, expected F32"],
        ),
        (lambda t: t.update(seen=torch.ones(3)), ["dtype mismatch: seen is F32, expected I64"]),
        (
            lambda t: t.update(seen=torch.ones(3, dtype=torch.int8)),
            ["dtype mismatch: seen is I8, expected I64"],
        ),
        (
            lambda t: t.update(seen=torch.ones(3, dtype=torch.bool)),
            ["dtype mismatch: seen is BOOL, expected I64"],
        ),
        (
            lambda t: (t.pop("seen"), t.update({"speak.weight": torch.ones(11, 4)})),
            ["missing: seen [3]", "unexpected: speak.weight [11, 4]"],
        ),
    ],
    ids=["missing", "unexpected", "shape", "int", "float", "int8", "bool", "two"],
)
def test_mismatched_tensors_raise_with_every_difference(
    file: Path, change: Callable[[dict[str, Tensor]], object], listed: list[str]
) -> None:
    rewrite(file, change)
    with pytest.raises(ArtifactError, match="the weights do not match the spec") as caught:
        load(file, registry=REGISTRY)
    assert all(line in str(caught.value) for line in listed)


def test_long_lists_of_differences_are_truncated(file: Path) -> None:
    rewrite(file, lambda t: t.update({f"extra{i}": torch.ones(1) for i in range(20)}))
    with pytest.raises(ArtifactError, match=r"and 12 more$"):
        load(file, registry=REGISTRY)


def spec_text(**model: object) -> str:
    return json.dumps({**TIED, "model": {"type": "kit:kit-tied", **model}})


ROW = {"kind": "model", "name": "kit-tied", "version": 1, "plugin": "kit"}
DEEP = "[" * 100_000 + "]" * 100_000
NESTED = '{"a": ' * 800 + "1" + "}" * 800
BAD_HEADERS: dict[str, tuple[dict[str, str | None], str]] = {
    "no zoo": ({"zoo": None}, "contains no spec"),
    "another format": ({"zoo": "3"}, "has format '3'; supported formats are 1 and 2"),
    "no spec": ({"spec": None}, "the header has no 'spec'"),
    "no lock": ({"lock": None}, "the header has no 'lock'"),
    "spec not json": ({"spec": "{zoo: 1"}, "'spec' in the header is not valid JSON"),
    "spec a list": ({"spec": "[]"}, "'spec' in the header is not valid"),
    "spec empty": ({"spec": "{}"}, "the spec is not valid with the installed components"),
    "spec deep": ({"spec": DEEP}, "'spec' in the header is not valid"),
    "spec nested": ({"spec": NESTED}, "more than 64 levels"),
    "model nested": (
        {"spec": '{"model": ' + NESTED + "}"},
        "more than 64 levels",
    ),
    "spec extends": ({"spec": '{"extends": "luong-2015"}'}, "without 'extends'"),
    "spec unknown key": ({"spec": spec_text(size=3)}, "unknown key 'size'"),
    "spec wrong value": ({"spec": spec_text(dim="4")}, "model.dim: is '4'"),
    "spec not buildable": ({"spec": spec_text(vocab=10**7)}, "must be at most 1,000,000"),
    "spec beyond memory": ({"spec": spec_text(dim=2**62)}, "model"),
    "huge number": ({"spec": "9" * 5000}, "'spec' in the header is not valid JSON"),
    "lock deep": ({"lock": DEEP}, "'lock' in the header is not valid"),
    "lock a mapping": ({"lock": "{}"}, "'lock' in the header is not valid"),
    "lock null": ({"lock": "null"}, "'lock' in the header is not valid"),
    "lock of numbers": ({"lock": "[1]"}, "'lock' in the header is not valid"),
    "lock row empty": ({"lock": "[{}]"}, "'lock' in the header is not valid"),
    "lock row type": (
        {"lock": json.dumps([{**ROW, "kind": ["model"]}])},
        "'lock' in the header is not valid",
    ),
    "lock lacks a row": ({"lock": "[]"}, "lacks model 'kit-tied'"),
    "provenance type": ({"provenance": "3"}, "'provenance' in the header is not valid"),
    "provenance deep": ({"provenance": DEEP}, "'provenance' in the header is not valid"),
}


@pytest.mark.parametrize("fault", BAD_HEADERS)
def test_invalid_header_raises(file: Path, fault: str) -> None:
    metadata, message = BAD_HEADERS[fault]
    rewrite(file, **metadata)
    with pytest.raises(ArtifactError) as caught:
        load(file, registry=REGISTRY)
    assert str(file) in str(caught.value)
    assert message in str(caught.value)
    assert "None==None" not in str(caught.value)


class Bomb:
    """Creates a directory when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("exploded",)


BAD_FILES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "directory": lambda file: (file.unlink(), file.mkdir()),
    "empty": lambda file: file.write_bytes(b""),
    "short": lambda file: file.write_bytes(b"\x01\x02"),
    "text": lambda file: file.write_text("this is not a model\n" * 9),
    "pickle": lambda file: file.write_bytes(pickle.dumps(Bomb())),
    "torch.save": lambda file: torch.save({"weights": torch.ones(3)}, file),
    "truncated header": lambda file: os.truncate(file, 40),
    "truncated weights": lambda file: os.truncate(file, file.stat().st_size - 1),
    "appended": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "huge header": lambda file: file.write_bytes(b"\xff" * 8 + file.read_bytes()[8:]),
    "deep header": lambda file: file.write_bytes(
        len(NESTED).to_bytes(8, "little") + NESTED.encode()
    ),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_invalid_file_raises_and_executes_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.chdir(file.parent)
    BAD_FILES[fault](file)
    with pytest.raises(ArtifactError) as caught:
        load(file, registry=REGISTRY)
    assert str(caught.value).startswith((f"{file} is ", f"{file}: no such file"))
    assert "\n" not in str(caught.value)
    assert not Path("exploded").exists()


def test_flipped_bits_of_the_header_raise_no_other_exception(file: Path) -> None:
    data = file.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    generator = random.Random(0)
    rejected = 0
    for _ in range(250):
        position = generator.randrange(header)
        flipped = bytes([data[position] ^ 1 << generator.randrange(8)])
        file.write_bytes(data[:position] + flipped + data[position + 1 :])
        try:
            load(file, registry=REGISTRY)
        except ArtifactError:
            rejected += 1
    assert rejected > 100


def test_missing_plugin_of_the_model_names_what_to_install(tmp_path: Path, site: Site) -> None:
    site.add("kit-scorers", scorer("kit-mine"), point="mine", version="1.2")
    overrides = ["model.decoder.attention.scorer=kit-mine"]
    model = compose("bahdanau-reversal", overrides=overrides, registry=site.registry())
    file = save(model, tmp_path / "m.safetensors")
    assert "mine" in [row["plugin"] for row in load(file, registry=site.registry()).providers]
    with pytest.raises(ArtifactError) as caught:
        load(file, registry=REGISTRY)
    assert "scorer 'kit-mine' of plugin 'mine' is not available" in str(caught.value)
    assert "pip install 'kit-scorers==1.2'" in str(caught.value)


def test_another_version_of_a_component_raises(file: Path) -> None:
    newer = ComponentRegistry.from_environment({"ZOO_PLUGINS": "none"}).with_components(
        [TiedV2], plugin="kit"
    )
    with pytest.raises(ArtifactError, match=r"version 1 of model 'kit-tied'.*has version 2"):
        load(file, registry=newer)


def test_file_replaced_while_loading_gives_one_of_the_two_models(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = compose({**TIED, "model": {"type": "kit-tied", "dim": 6}}, registry=REGISTRY)
    other = save(wide, tmp_path / "other.safetensors")

    def swap() -> None:
        if other.exists():
            os.replace(other, file)

    monkeypatch.setattr(Tied, "on_build", swap)
    try:
        model = load(file, registry=REGISTRY)
    except ArtifactError:
        return
    assert model.spec is not None
    assert list(model.read.weight.shape) == [11, model.spec["model"]["dim"]]


@pytest.mark.parametrize("device", ["nonsense", "cuda:99"])
def test_unavailable_device_raises(file: Path, device: str) -> None:
    with pytest.raises(ZooError, match=device):
        load(file, device=device, registry=REGISTRY)


def test_model_without_a_spec_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="not composed from a spec"):
        save(Tied(), tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_component_given_in_python_is_saved_or_raises(tmp_path: Path) -> None:
    attention = {"scorer": Blueprint.of(Additive, hidden=8)}
    spec = {"extends": "bahdanau-reversal", "model": {"decoder": {"attention": attention}}}
    model = compose({**spec, "name": "x"}, registry=REGISTRY)
    try:
        file = save(model, tmp_path / "m.safetensors")
    except ArtifactError:
        return
    assert_same_bits(all_tensors(load(file, registry=REGISTRY)), all_tensors(model))


def test_provenance_that_is_not_json_raises(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="provenance"):
        save(compose(TIED, registry=REGISTRY), tmp_path / "m", provenance={"data": object()})


@pytest.mark.parametrize(
    "path",
    ["folder", "missing/m.safetensors", "file/m.safetensors", "/proc/m", "n" * 300],
    ids=["directory", "missing directory", "file as directory", "proc", "long name"],
)
def test_unwritable_path_raises(tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ArtifactError) as caught:
        save(compose(TIED, registry=REGISTRY), tmp_path / path)
    assert str(caught.value).startswith(str(tmp_path / path))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_state_dict_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="an OrderedDict cannot be saved"):
        save(torch.nn.Linear(1, 1).state_dict(), tmp_path / "model.safetensors")
