"""Weights that are shipped as files: by name, from a checkout and from an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hub_server import Hub
from plugin_kit import Site

import zoo
from zoo.errors import ArtifactError, MissingExtra, RegistryError, ZooWarning
from zoo.hub.catalogue import load_catalogue
from zoo.hub.lock_file import hash_file
from zoo.hub.models import find, named_path, read_header
from zoo.hub.shipped import find_shipped, shipped_models

CATALOGUE = """
zoo: 1
models:
  - name: kit-model
    spec: bahdanau-reversal
    paper: None
    licence: MIT
    shipped:
      file: weights/kit_weights/kit-model.safetensors
      sha256: "{sha256}"
      bytes: {bytes}
      dtype: bfloat16
      recipe: kit
      data: [{{name: kit, licence: CC BY 4.0, attribution: Authors}}]
"""
ENTRY_POINTS = "[zoo.weights]\nkit = kit_weights\nmissing = no_such_package\n"


@pytest.fixture(scope="module")
def shipped_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = zoo.compose("bahdanau-reversal", seed=3).bfloat16()
    return zoo.save(model, tmp_path_factory.mktemp("shipped") / "kit-model.safetensors")


@pytest.fixture
def checkout(hub: Hub, shipped_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalogue and the file that it lists."""
    folder = tmp_path / "checkout"
    (folder / "weights" / "kit_weights").mkdir(parents=True)
    (folder / "weights" / "kit_weights" / shipped_file.name).write_bytes(shipped_file.read_bytes())
    size = shipped_file.stat().st_size
    text = CATALOGUE.format(sha256=hash_file(shipped_file), bytes=size)
    (folder / "registry.yaml").write_text(text)
    monkeypatch.setattr("zoo.hub.catalogue.builtin_file", lambda: folder / "registry.yaml")
    return folder


def test_model_is_loaded_by_name_in_float32_without_requests(hub: Hub, checkout: Path) -> None:
    stored = zoo.load(find("kit-model"))
    loaded = zoo.load("kit-model")
    assert {p.dtype for p in stored.parameters()} == {torch.bfloat16}
    for name, parameter in loaded.named_parameters():
        assert parameter.dtype is torch.float32
        torch.testing.assert_close(parameter, stored.get_parameter(name).float(), rtol=0, atol=0)
    half = zoo.load("kit-model", dtype="bfloat16")
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}
    assert read_header("kit-model").spec == loaded.spec
    assert [model.name for model in shipped_models()] == ["kit-model"]
    assert [model.name for model in load_catalogue().search(["shipped"])] == ["kit-model"]
    assert hub.requests == []


@pytest.mark.parametrize("kind", ["file", "folder", "run"])
def test_path_of_a_shipped_name_does_not_replace_the_model(
    checkout: Path, saved: Path, kind: str
) -> None:
    other = Path("kit-model")
    if kind == "file":
        other.write_bytes(saved.read_bytes())
    else:
        other.mkdir()
    if kind == "run":
        for name, content in (("model.safetensors", saved.read_bytes()), ("log.jsonl", b"")):
            (other / name).write_bytes(content)
    with pytest.warns(ZooWarning, match=r"'kit-model' is the shipped model.* \./kit-model"):
        assert find("kit-model").is_relative_to(checkout)
    assert named_path("kit-model") is None
    assert find("./kit-model") == find(other) == other


def test_file_of_another_package_does_not_block_a_model(
    checkout: Path, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = checkout / "weights" / "kit_weights"
    site = Site(tmp_path / "site", monkeypatch)
    package = source.rename(site.folder / "kit_weights")
    third_party = site.folder / "a_weights"
    third_party.mkdir()
    (third_party / "kit-model.safetensors").write_bytes(saved.read_bytes())
    site.declare("a-weights", "[zoo.weights]\na = a_weights\n")
    with pytest.raises(ArtifactError, match=r"a_weights/kit-model.safetensors has .* expects"):
        find("kit-model")
    site.declare("kit-weights", ENTRY_POINTS)
    assert find("kit-model") == package / "kit-model.safetensors"


def test_catalogue_of_a_plugin_does_not_block_a_model(checkout: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text((checkout / "registry.yaml").read_text().replace("MIT", "GPL"))
    with pytest.warns(ZooWarning, match=r"'kit-model' is the model of the zoo; .*other.yaml also"):
        assert load_catalogue([other]).get("kit-model").licence == "MIT"


def test_damaged_file_raises(checkout: Path) -> None:
    file = find("kit-model")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"the catalogue expects .* 'kit-model': the file is d"):
        zoo.load("kit-model")


def test_file_is_found_in_an_installed_package(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = checkout / "weights" / "kit_weights"
    site = Site(tmp_path / "site", monkeypatch)
    package = source.rename(site.folder / "kit_weights")
    with pytest.raises(RegistryError, match=r"the weights of 'kit-model' are not installed: "):
        zoo.load("kit-model")
    monkeypatch.setattr("zoo.hub.shipped.builtin_file", lambda: checkout / "registry.yaml")
    with pytest.raises(MissingExtra, match=r"'kit-model' needs .* 'attention-zoo\[weights\]'"):
        zoo.load("kit-model")
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    site.declare("kit-weights", ENTRY_POINTS)
    assert find("kit-model") == package / "kit-model.safetensors"


def test_shipped_weights_have_no_revision_and_cannot_be_pulled(checkout: Path) -> None:
    for call in (lambda: zoo.load("kit-model", revision="main"), lambda: zoo.pull("kit-model")):
        with pytest.raises(RegistryError, match="shipped in a file, not on the Hub"):
            call()


def test_entry_without_shipped_weights_raises() -> None:
    with pytest.raises(RegistryError, match="'vit-base' has no shipped weights"):
        find_shipped(load_catalogue().get("vit-base"))
