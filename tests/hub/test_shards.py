"""Sharded models on the Hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from artifact_kit import all_tensors, assert_same_bits
from hub_kit import NAME, WEIGHTS
from hub_server import TOKEN, Hub

import zoo
from zoo.artifact import read_header
from zoo.errors import HubError

INDEX = f"{WEIGHTS}.index.json"


@pytest.fixture
def model(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> zoo.Model:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return zoo.compose("bahdanau-reversal", seed=5)


def weights(hub: Hub) -> set[str]:
    repo = hub.repo(NAME)
    return {name for name in repo.commits[repo.branches["main"]] if "safetensors" in name}


def test_shards_are_bit_identical_and_downloaded_once(hub: Hub, model: zoo.Model) -> None:
    pushed = zoo.push(model, NAME, shard_bytes=100_000)
    shards = weights(hub) - {INDEX}
    assert len(shards) == 3
    assert {*shards, INDEX, "config.json", "README.md", "tree.svg"} == set(pushed.files)
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME)))
    hub.requests.clear()
    pulled = zoo.pull(NAME, local_files_only=True)
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(pulled.path, verify=True)))
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME)))
    assert hub.requests == []


def test_saved_shards_are_pushed_unchanged(hub: Hub, model: zoo.Model, tmp_path: Path) -> None:
    folder = zoo.save(model, tmp_path / "shards", shard_bytes=100_000)
    (folder / "diary.safetensors").write_bytes(b"private")
    zoo.push(folder, NAME)
    assert "diary.safetensors" not in weights(hub)
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME)))


def test_resharded_model_keeps_its_provenance(hub: Hub, model: zoo.Model, tmp_path: Path) -> None:
    file = zoo.save(model, tmp_path / "m.safetensors", provenance={"seed": 41})
    pushed = zoo.push(file, NAME, shard_bytes="100kB")
    assert INDEX in pushed.files
    path = zoo.pull(NAME).path
    assert read_header(path).provenance["seed"] == 41
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(path)))


def test_push_removes_replaced_weights_only(hub: Hub, model: zoo.Model) -> None:
    hub.repo(NAME).add({"notes.txt": b"mine", "other.safetensors": b"mine"})
    zoo.push(model, NAME, shard_bytes=100_000)
    zoo.push(model, NAME)
    assert weights(hub) == {WEIGHTS, "other.safetensors"}
    zoo.push(model, NAME, shard_bytes=150_000)
    pushed = zoo.push(model, NAME, shard_bytes=60_000)
    assert weights(hub) == {n for n in pushed.files if "safetensors" in n} | {"other.safetensors"}
    assert WEIGHTS not in weights(hub)
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME)))


def test_offline_missing_shards_are_listed(hub: Hub, model: zoo.Model, cache: Path) -> None:
    zoo.push(model, NAME, shard_bytes=100_000)
    pulled = zoo.pull(NAME)
    first, second = sorted(n for n in pulled.files if n != INDEX)[:2]
    (pulled.path / first).resolve().unlink()
    (pulled.path / second).unlink()
    with pytest.raises(HubError) as caught:
        zoo.load(NAME, local_files_only=True)
    assert str(caught.value).endswith(f"missing or damaged: {first}, {second}")
    zoo.load(NAME)
    zoo.load(NAME, local_files_only=True)


def test_offline_with_an_empty_cache_raises(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in (NAME, f"{NAME}@{'a' * 40}"):
        with pytest.raises(HubError, match=r"is not in the cache .* offline mode"):
            zoo.load(name)
    with pytest.raises(HubError, match="cannot be pushed to: HF_HUB_OFFLINE is set"):
        zoo.push("model.safetensors", NAME)
    assert hub.requests == []


def test_only_rank_0_pushes(hub: Hub, model: zoo.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(HubError, match="only rank 0"):
        zoo.push(model, NAME)
    assert hub.requests == []
