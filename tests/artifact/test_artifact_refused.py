"""A file that does not fit, a place that cannot be written: refused with a sentence that helps."""

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
    """A whole, good file of the tied model."""
    return save(compose(TIED, registry=REGISTRY), tmp_path / "model.safetensors")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site", monkeypatch)


@pytest.mark.parametrize(
    ("change", "listed"),
    [
        (lambda t: t.pop("read.weight"), ["missing: read.weight [11, 4]"]),
        (lambda t: t.update(extra=torch.ones(2)), ["surplus: extra [2]"]),
        (
            lambda t: t.update({"read.weight": torch.ones(4, 11)}),
            ["misshapen: read.weight is [4, 11], should be [11, 4]"],
        ),
        (
            lambda t: t.update({"read.weight": torch.ones(11, 4, dtype=torch.int64)}),
            ["wrong dtype: read.weight is I64"],
        ),
        (lambda t: t.update(seen=torch.ones(3)), ["wrong dtype: seen is F32"]),
        (lambda t: t.update(seen=torch.ones(3, dtype=torch.int8)), ["wrong dtype: seen is I8"]),
        (lambda t: t.update(seen=torch.ones(3, dtype=torch.bool)), ["wrong dtype: seen is BOOL"]),
        (
            lambda t: (t.pop("seen"), t.update({"speak.weight": torch.ones(11, 4)})),
            ["missing: seen [3]", "surplus: speak.weight [11, 4]"],
        ),
    ],
    ids=["missing", "surplus", "misshapen", "int", "float", "int8", "bool", "two at once"],
)
def test_tensors_that_do_not_fit_are_refused_with_every_difference(
    file: Path, change: Callable[[dict[str, Tensor]], object], listed: list[str]
) -> None:
    rewrite(file, change)
    with pytest.raises(ArtifactError, match="does not hold the weights of its spec") as caught:
        load(file, registry=REGISTRY)
    assert all(line in str(caught.value) for line in listed)


def test_a_long_list_of_differences_is_cut_with_a_count(file: Path) -> None:
    rewrite(file, lambda t: t.update({f"extra{i}": torch.ones(1) for i in range(20)}))
    with pytest.raises(ArtifactError, match=r"and 12 more$"):
        load(file, registry=REGISTRY)


def spec_text(**model: object) -> str:
    return json.dumps({**TIED, "model": {"type": "kit:kit-tied", **model}})


ROW = {"kind": "model", "name": "kit-tied", "version": 1, "plugin": "kit"}
DEEP = "[" * 100_000 + "]" * 100_000
NESTED = '{"a": ' * 800 + "1" + "}" * 800
BAD_HEADERS: dict[str, tuple[dict[str, str | None], str]] = {
    "no zoo": ({"zoo": None}, "holds no spec"),
    "another format": ({"zoo": "3"}, "is of format 3; the zoo reads formats 1 and 2"),
    "no spec": ({"spec": None}, "spec or lock cannot be read"),
    "no lock": ({"lock": None}, "spec or lock cannot be read"),
    "spec no json": ({"spec": "{zoo: 1"}, "spec or lock cannot be read"),
    "spec a list": ({"spec": "[]"}, "has not the right form"),
    "spec empty": ({"spec": "{}"}, "its spec does not hold here"),
    "spec deep": ({"spec": DEEP}, "spec or lock cannot be read"),
    "spec nested": ({"spec": NESTED}, "its spec does not hold here"),
    "model nested": ({"spec": '{"model": ' + NESTED + "}"}, "its spec does not hold here"),
    "spec extends": ({"spec": '{"extends": "luong-2015"}'}, "a saved spec is complete"),
    "spec unknown key": ({"spec": spec_text(size=3)}, "unknown key 'size'"),
    "spec wrong value": ({"spec": spec_text(dim="4")}, "model.dim: is '4'"),
    "spec not buildable": ({"spec": spec_text(vocab=10**7)}, "must be at most a million"),
    "spec beyond memory": ({"spec": spec_text(dim=2**62)}, "model"),
    "huge number": ({"spec": "9" * 5000}, "spec or lock cannot be read"),
    "lock deep": ({"lock": DEEP}, "spec or lock cannot be read"),
    "lock a mapping": ({"lock": "{}"}, "has not the right form"),
    "lock null": ({"lock": "null"}, "has not the right form"),
    "lock of numbers": ({"lock": "[1]"}, "has not the right form"),
    "lock row empty": ({"lock": "[{}]"}, "has not the right form"),
    "lock row odd": ({"lock": json.dumps([{**ROW, "kind": ["model"]}])}, "has not the right form"),
    "lock lacks a row": ({"lock": "[]"}, "lock"),
    "provenance odd": ({"provenance": "3"}, "has not the right form"),
    "provenance deep": ({"provenance": DEEP}, "cannot be read"),
}


@pytest.mark.parametrize("fault", BAD_HEADERS)
def test_a_bad_header_is_refused_in_words(file: Path, fault: str) -> None:
    words, sentence = BAD_HEADERS[fault]
    rewrite(file, **words)
    with pytest.raises(ArtifactError) as caught:
        load(file, registry=REGISTRY)
    assert str(file) in str(caught.value)
    assert sentence in str(caught.value)
    assert "None==None" not in str(caught.value)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("exploded",)


BAD_FILES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "directory": lambda file: (file.unlink(), file.mkdir()),
    "empty": lambda file: file.write_bytes(b""),
    "short": lambda file: file.write_bytes(b"\x01\x02"),
    "text": lambda file: file.write_text("this is no model, whatever its name says\n" * 9),
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
def test_a_file_that_is_no_model_is_refused_and_runs_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.chdir(file.parent)
    BAD_FILES[fault](file)
    with pytest.raises(ArtifactError) as caught:
        load(file, registry=REGISTRY)
    assert str(caught.value).startswith(f"{file} is ")
    assert "\n" not in str(caught.value)
    assert not Path("exploded").exists()


def test_no_flipped_bit_of_the_header_ends_in_another_exception(file: Path) -> None:
    whole = file.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    draw = random.Random(0)
    refused = 0
    for _ in range(250):
        at = draw.randrange(header)
        flipped = bytes([whole[at] ^ 1 << draw.randrange(8)])
        file.write_bytes(whole[:at] + flipped + whole[at + 1 :])
        try:
            load(file, registry=REGISTRY)
        except ArtifactError:
            refused += 1
    assert refused > 100


def test_a_missing_plugin_says_what_to_install(tmp_path: Path, site: Site) -> None:
    site.add("kit-scorers", scorer("kit-mine"), point="mine", version="1.2")
    chosen = ["model.decoder.attention.scorer=kit-mine"]
    model = compose("bahdanau-reversal", overrides=chosen, registry=site.registry())
    file = save(model, tmp_path / "m.safetensors")
    assert "mine" in [row["plugin"] for row in load(file, registry=site.registry()).providers]
    with pytest.raises(ArtifactError) as caught:
        load(file, registry=REGISTRY)
    assert "needs scorer 'kit-mine' of plugin 'mine'" in str(caught.value)
    assert "pip install 'kit-scorers==1.2'" in str(caught.value)


def test_another_version_of_a_component_is_refused(file: Path) -> None:
    newer = ComponentRegistry.from_environment({"ZOO_PLUGINS": "none"}).with_components(
        [TiedV2], plugin="kit"
    )
    with pytest.raises(ArtifactError, match=r"version 1 of model 'kit-tied'.*has version 2"):
        load(file, registry=newer)


def test_a_file_replaced_while_it_is_read_gives_one_of_the_two_whole(
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
def test_a_device_that_is_not_there_is_refused_in_words(file: Path, device: str) -> None:
    with pytest.raises(ZooError, match=device):
        load(file, device=device, registry=REGISTRY)


def test_a_model_that_no_spec_describes_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="not composed from a spec"):
        save(Tied(), tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_part_written_in_python_is_refused_on_save_or_comes_back(tmp_path: Path) -> None:
    attention = {"scorer": Blueprint.of(Additive, hidden=8)}
    spec = {"extends": "bahdanau-reversal", "model": {"decoder": {"attention": attention}}}
    model = compose({**spec, "name": "x"}, registry=REGISTRY)
    try:
        file = save(model, tmp_path / "m.safetensors")
    except ArtifactError:
        return
    assert_same_bits(all_tensors(load(file, registry=REGISTRY)), all_tensors(model))


def test_provenance_that_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="provenance"):
        save(compose(TIED, registry=REGISTRY), tmp_path / "m", provenance={"data": object()})


@pytest.mark.parametrize(
    "place",
    ["folder", "missing/m.safetensors", "file/m.safetensors", "/proc/m", "n" * 300],
    ids=["a folder", "in no folder", "in a file", "in proc", "too long a name"],
)
def test_a_place_that_cannot_be_written_is_refused_in_words(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ArtifactError) as caught:
        save(compose(TIED, registry=REGISTRY), tmp_path / place)
    assert str(caught.value).startswith(str(tmp_path / place))
    assert sorted(tmp_path.rglob("*")) == before
