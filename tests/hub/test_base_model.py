"""Training that starts from a model on the Hub."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hub_kit import NAME
from hub_server import TOKEN, Hub
from training_kit import make_spec, write_files

import zoo
from zoo.artifact import read_header
from zoo.hub.base_model import find_base
from zoo.training.provenance import describe_base


@pytest.fixture
def pushed(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The commit of a trained model on the Hub."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    spec = make_spec(write_files(tmp_path), steps=1, validation=None)
    zoo.train(spec, output=tmp_path / "base", device="cpu")
    return zoo.push(tmp_path / "base", NAME).commit


def test_the_card_of_a_trained_model_names_the_base_and_its_commit(
    hub: Hub, pushed: str, tmp_path: Path
) -> None:
    train = make_spec(tmp_path, steps=1, validation=None)["train"]
    spec = {"extends": f"{NAME}@{pushed}", "name": "tuned", "train": train}
    zoo.train(spec, output=tmp_path / "run", device="cpu")
    provenance = read_header(tmp_path / "run").provenance
    assert provenance["base"]["name"] == f"{NAME}@{pushed}"
    assert provenance["base"]["commit"] == pushed
    assert provenance["base"]["sha256"] == read_header(tmp_path / "base").identity
    assert provenance["base_model"] == NAME
    folder = zoo.save_folder(zoo.load(tmp_path / "run"), tmp_path / "out", provenance=provenance)
    card = (Path(folder) / "README.md").read_text()
    assert yaml.safe_load(card.split("---")[1])["base_model"] == NAME


def test_a_branch_is_recorded_by_its_commit_and_a_missing_revision_is_rejected(
    hub: Hub, pushed: str
) -> None:
    base = find_base(NAME)
    assert base.record()["commit"] == pushed
    with pytest.raises(zoo.ZooError):
        find_base(f"{NAME}@missing")


def test_the_repository_of_an_imported_base_is_named(hub: Hub) -> None:
    record = {"name": "bert.safetensors", "sha256": "0" * 64}
    assert describe_base(record) == {"base": record}
    folder = {**record, "imported": {"imported": "bert"}}
    assert "base_model" not in describe_base(folder)
    imported = {**record, "imported": {"imported": "org/bert@main", "commit": "a" * 40}}
    assert describe_base(imported)["base_model"] == "org/bert"
    assert describe_base(None) == {}
