"""`zoo.lock`: recorded commits are used until the next pull."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

import pytest
import torch
from hub_kit import NAME, WEIGHTS
from hub_server import TOKEN, Hub
from hub_store import Entry

import zoo
from zoo.errors import HubError
from zoo.hub.lock_file import Pin, read_lock, write_pin
from zoo.hub.reference import Reference
from zoo.spec import document

LOCK = Path("zoo.lock")
A, B = "a" * 40, "b" * 40


@pytest.fixture
def models(hub: Hub, saved: Path) -> tuple[str, str]:
    """Two commits of different models."""
    other = zoo.save(zoo.compose("bahdanau-reversal", seed=7), saved.with_name("other.safetensors"))
    repo = hub.repo(NAME)
    first = repo.add({WEIGHTS: saved.read_bytes()})
    repo.branches["v1"] = first
    return first, repo.add({WEIGHTS: other.read_bytes()})


def test_pull_records_the_commit_that_load_uses(hub: Hub, models: tuple[str, str]) -> None:
    first, second = models
    hub.repo(NAME).branches["main"] = first
    assert zoo.pull(NAME).commit == first
    hub.repo(NAME).branches["main"] = second
    hub.requests.clear()
    pinned = zoo.load(NAME)
    assert hub.requests == []
    LOCK.unlink()
    newest = zoo.load(NAME)
    assert not (pinned.source.table.weight == newest.source.table.weight).all()


def test_pull_updates_the_pin_unless_locked(hub: Hub, models: tuple[str, str]) -> None:
    first, second = models
    hub.repo(NAME).branches["main"] = first
    zoo.pull(NAME)
    hub.repo(NAME).branches["main"] = second
    text = LOCK.read_text()
    assert zoo.pull(NAME, locked=True).commit == first
    assert LOCK.read_text() == text
    assert zoo.pull(NAME).commit == second
    assert read_lock()[f"{NAME}@main"].commit == second


def test_locked_raises_for_references_that_are_not_listed(
    hub: Hub, models: tuple[str, str]
) -> None:
    for reference in (NAME, f"{NAME}@v1"):
        with pytest.raises(HubError, match=r"zoo\.lock does not list zoo-team/kit@"):
            zoo.pull(reference, locked=True)
    assert hub.requests == []
    zoo.pull(NAME)
    with pytest.raises(HubError, match=r"zoo\.lock does not list zoo-team/kit@v1"):
        zoo.pull(NAME, revision="v1", locked=True)
    assert zoo.pull(f"{NAME}@{models[0]}", locked=True).commit == models[0]  # a commit needs no pin


def test_changed_weights_of_a_pinned_commit_raise(
    hub: Hub, models: tuple[str, str], cache: Path
) -> None:
    zoo.pull(f"{NAME}@v1")
    repo = hub.repo(NAME)
    repo.commits[models[0]] = repo.commits[models[1]]
    with pytest.raises(HubError, match=r"has sha256 .* on the Hub, but zoo.lock"):
        zoo.pull(f"{NAME}@v1", locked=True, cache_dir=cache.parent / "another")


def test_several_references_are_recorded(hub: Hub, models: tuple[str, str]) -> None:
    for reference in (NAME, f"hub:{NAME}@v1", f"{NAME}@{models[0]}"):
        zoo.pull(reference)
    pins = read_lock()
    assert {key: pin.commit for key, pin in pins.items()} == {
        f"{NAME}@main": models[1],
        f"{NAME}@v1": models[0],
        f"{NAME}@{models[0]}": models[0],
    }
    assert all(set(pin.weights) == {WEIGHTS} for pin in pins.values())


BAD = {
    "not yaml": ("{", "zoo.lock cannot be read: .*invalid YAML"),
    "empty": ("", "zoo.lock cannot be read: .*is empty"),
    "a list": ("- 1", "not a valid lock file"),
    "another version": ("zoo: 2\nmodels: {}", "not a valid lock file"),
    "no models": ("zoo: 1", "not a valid lock file"),
    "a key twice": (
        f"zoo: 1\nmodels:\n  a/b@c: {{commit: {A}}}\n  a/b@c: {{commit: {B}}}",
        "not a valid lock file",
    ),
    "no mapping": ("zoo: 1\nmodels:\n  a/b@c: 7", r"zoo.lock:3:10: not a valid lock file"),
    "no commit": ("zoo: 1\nmodels:\n  a/b@c: {}", r"zoo.lock:3:10: None is not a commit"),
    "a path": ("zoo: 1\nmodels:\n  a/b@c: {commit: ../../x}", "is not a commit of 40"),
    "a file outside": (
        f"zoo: 1\nmodels:\n  a/b@c: {{commit: {A}, weights: {{../x: {A}}}}}",
        "is not a valid file name",
    ),
    "no hash": (
        f"zoo: 1\nmodels:\n  a/b@c: {{commit: {A}, weights: {{x: {A}}}}}",
        "is not a sha256",
    ),
}


@pytest.mark.parametrize("fault", BAD)
def test_invalid_lock_file_raises_with_its_line(hub: Hub, fault: str) -> None:
    text, message = BAD[fault]
    LOCK.write_text(text)
    for call in (lambda: zoo.load(NAME), lambda: zoo.pull(NAME, locked=True)):
        with pytest.raises(HubError, match=message):
            call()
    assert LOCK.read_text() == text
    assert hub.requests == []


def test_failed_write_keeps_the_lock_file(tmp_path: Path) -> None:
    write_pin(Reference("a/b"), Pin(A), tmp_path)
    text = (tmp_path / "zoo.lock").read_text()
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(HubError, match="cannot be written: not a directory"):
        write_pin(Reference("a/b"), Pin(B), blocked)
    assert (tmp_path / "zoo.lock").read_text() == text
    assert {p.name for p in tmp_path.iterdir()} == {"zoo.lock", "file"}


@pytest.mark.parametrize("commit", ["1" * 40, "12e" + "3" * 37, "0" * 40])
def test_commit_of_digits_stays_a_string(tmp_path: Path, commit: str) -> None:
    pin = Pin(commit, {WEIGHTS: "7" * 64})
    write_pin(Reference("a/b"), pin, tmp_path)
    assert read_lock(tmp_path) == {"a/b@main": pin}


def test_token_is_not_in_the_lock_file(
    hub: Hub, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    zoo.pull(NAME)
    assert TOKEN not in LOCK.read_text()


@pytest.mark.parametrize("added", [WEIGHTS, "other-00001-of-00001.safetensors"])
def test_weights_that_are_not_pinned_raise(
    hub: Hub, saved: Path, tmp_path: Path, added: str
) -> None:
    """The hub keeps the pinned shards, but its index lists another file."""
    folder = zoo.save(zoo.load(saved), tmp_path / "shards", shard_bytes=100_000)
    repo = hub.repo(NAME)
    commit = repo.add({path.name: path.read_bytes() for path in folder.iterdir()})
    zoo.pull(NAME)
    # Lock files of earlier versions do not list the index.
    (pin,) = read_lock().values()
    shards = {name: sha256 for name, sha256 in pin.weights.items() if name.endswith("tensors")}
    write_pin(Reference(NAME), Pin(commit, shards))
    index = json.dumps({"metadata": {}, "weight_map": {"w": added}}).encode()
    repo.add({added: saved.read_bytes(), f"{WEIGHTS}.index.json": index})
    repo.commits[commit] = repo.commits[repo.branches["main"]]
    for call in (partial(zoo.pull, NAME, locked=True), partial(zoo.load, NAME)):
        with pytest.raises(HubError, match=rf"{added} at {commit[:12]} is not pinned in zoo.lock"):
            call(cache_dir=tmp_path / "another")


def add_outside_lfs(hub: Hub, folder: Path) -> str:
    """Add a commit whose weights are not stored in LFS, so that the hub lists no sha256."""
    files = {path.name: Entry(path.read_bytes(), False) for path in folder.iterdir()}
    return hub.repo(NAME).commit("main", files)


@pytest.mark.parametrize("shard_bytes", [10**6, 100_000], ids=["file", "shards"])
def test_weights_outside_lfs_are_pinned(
    hub: Hub, tmp_path: Path, shard_bytes: int, cache: Path
) -> None:
    first, second = (
        zoo.save(
            zoo.compose("bahdanau-reversal", seed=seed),
            tmp_path / str(seed),
            shard_bytes=shard_bytes,
        )
        for seed in (1, 2)
    )
    commit = add_outside_lfs(hub, first)
    zoo.pull(NAME)
    pin = read_lock()[f"{NAME}@main"]
    hashes = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in first.iterdir()}
    assert pin == Pin(commit, hashes)
    again = zoo.load(NAME, cache_dir=tmp_path / "another").state_dict()
    assert all(torch.equal(again[n], t) for n, t in zoo.load(first).state_dict().items())
    add_outside_lfs(hub, second)
    hub.repo(NAME).commits[commit] = hub.repo(NAME).commits[hub.repo(NAME).branches["main"]]
    for call in (partial(zoo.pull, NAME, locked=True), partial(zoo.load, NAME)):
        with pytest.raises(HubError, match=r"has sha256 .* on the Hub, but zoo.lock"):
            call(cache_dir=tmp_path / "third")


def test_pinned_weights_cannot_be_replaced_by_a_file_outside_lfs(
    hub: Hub, models: tuple[str, str], saved: Path, tmp_path: Path
) -> None:
    zoo.pull(NAME)
    hub.repo(NAME).commits[models[1]][WEIGHTS] = Entry(saved.read_bytes(), False)
    with pytest.raises(HubError, match=r"has sha256 .* on the Hub, but zoo.lock"):
        zoo.load(NAME, cache_dir=tmp_path / "another")


@pytest.mark.parametrize("limit", ["MAX_BYTES", "MAX_NODES"])
def test_lock_file_that_could_not_be_read_is_not_written(
    tmp_path: Path, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pin(Reference("a/b"), Pin(A), tmp_path)
    text = (tmp_path / "zoo.lock").read_text()
    monkeypatch.setattr(document, limit, len(text) + 10 if limit == "MAX_BYTES" else 12)
    with pytest.raises(
        HubError, match=r"the commit was not recorded: with 2 references, zoo\.lock"
    ):
        write_pin(Reference("c/d"), Pin(A), tmp_path)
    assert (tmp_path / "zoo.lock").read_text() == text
    assert list(read_lock(tmp_path)) == ["a/b@main"]


def test_lock_file_over_a_megabyte_is_not_written(tmp_path: Path) -> None:
    shards = {f"model-{n:05}-of-06000.safetensors": "7" * 64 for n in range(6000)}
    write_pin(Reference("a/b"), Pin(A, shards), tmp_path)
    with pytest.raises(HubError, match=r"has 1,\d{3},\d{3} bytes; the limit is 1,000,000; remove"):
        write_pin(Reference("c/d"), Pin(A, shards), tmp_path)
    assert read_lock(tmp_path) == {"a/b@main": Pin(A, shards)}
