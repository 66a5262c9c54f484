"""Models of transformers are loaded by name: downloaded, imported once and cached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hf_model_kit import hf_model
from hub_kit import environment, list_files
from hub_server import Hub
from typer.testing import CliRunner

import zoo
from zoo.artifact import read_header
from zoo.cli.main import app
from zoo.errors import HubError, ZooError
from zoo.hub.checkout import Options
from zoo.hub.lock_file import read_lock
from zoo.hub.models import find
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo_exchange import imported

NAME = "org/small-llama"
IDS = [[1, 5, 9, 3]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `save_pretrained` writes it, in three shards. Tests must not change it."""
    path = tmp_path_factory.mktemp("theirs")
    hf_model("llama").save_pretrained(path, max_shard_size="5KB")
    assert len(list(path.glob("*.safetensors"))) > 2
    return path


@pytest.fixture
def commit(hub: Hub, folder: Path) -> str:
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    traps = {"modeling_trap.py": b"raise SystemExit", "pytorch_model.bin": b"\x80\x04"}
    return hub.repo(NAME).add({**files, **traps, "model.fp16.safetensors": b"another variant"})


def logits(model: zoo.Model) -> torch.Tensor:
    with torch.no_grad():
        return model({"target": torch.tensor(IDS)}).logits


def test_a_repository_is_imported_once(hub: Hub, commit: str, folder: Path, cache: Path) -> None:
    model = zoo.load(NAME)
    with torch.no_grad():
        expected = hf_model("llama")(torch.tensor(IDS)).logits[:, :-1]
    torch.testing.assert_close(logits(model), expected, rtol=0, atol=1e-5)
    assert not hub.requests_to("modeling_trap|pytorch_model|fp16")

    path = find(NAME)
    assert path.is_relative_to(cache / "models--org--small-llama" / ".zoo-imported" / commit)
    provenance = read_header(path).provenance
    assert (provenance["imported"], provenance["commit"]) == (NAME, commit)

    changed = os.stat(path).st_mtime_ns
    hub.requests.clear()
    assert torch.equal(logits(zoo.load(NAME)), logits(model))
    assert [path_of.path for path_of in hub.requests] == [f"/api/models/{NAME}/revision/main"]
    assert os.stat(path).st_mtime_ns == changed
    assert not list((cache / "models--org--small-llama").rglob("*.part"))


def test_an_imported_model_is_loaded_offline(hub: Hub, commit: str, cache: Path) -> None:
    with pytest.raises(HubError, match="not in the cache"):
        zoo.load(NAME, local_files_only=True)
    model = zoo.load(NAME)
    for shard in (cache / "models--org--small-llama").glob("snapshots/*/*.safetensors"):
        shard.resolve().unlink()
        shard.unlink()
    hub.requests.clear()
    assert torch.equal(logits(zoo.load(NAME, local_files_only=True)), logits(model))
    assert hub.requests == []


def test_a_new_commit_is_imported_and_an_older_one_stays(hub: Hub, commit: str) -> None:
    first = find(NAME)
    config = json.loads((first.parents[2] / "snapshots" / commit / "config.json").read_text())
    second_commit = hub.repo(NAME).add(
        {"config.json": json.dumps({**config, "rms_norm_eps": 0.5}).encode()}
    )
    second = find(NAME)
    assert second.parent.name == second_commit
    assert not torch.equal(logits(zoo.load(first)), logits(zoo.load(second)))
    assert find(NAME, revision=commit) == first


def test_another_version_of_the_importer_imports_again(
    hub: Hub, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = find(NAME)
    monkeypatch.setattr(imported, "version", lambda: "99.0")
    second = find(NAME)
    assert (first.parent, first.exists(), second.exists()) == (second.parent, False, True)


def test_force_download_imports_again(hub: Hub, commit: str) -> None:
    path = find(NAME)
    inode = path.stat().st_ino
    find(NAME, options=Options(force_download=True))
    assert path.stat().st_ino != inode


def test_pull_records_the_hashes_of_all_files(hub: Hub, commit: str) -> None:
    pulled = zoo.pull(NAME)
    assert pulled.path == find(NAME)
    pin = read_lock()[f"{NAME}@main"]
    assert pin.commit == commit
    assert {"config.json", "model.safetensors.index.json"} < set(pin.weights)
    hub.repo(NAME).put(**{"README.md": b"new"})
    assert find(NAME) == pulled.path


def test_a_damaged_shard_is_not_imported(hub: Hub, commit: str, cache: Path) -> None:
    hub.fault("", lambda answer: replace(answer, body=answer.body[:-1] + b"?"), port="cdn")
    with pytest.raises(HubError, match="does not match its hash"):
        zoo.load(NAME)
    assert not [name for name in list_files(cache) if ".zoo-imported" in name]


def _flip_a_weight(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped weight": _flip_a_weight,
    "truncated": lambda path: os.truncate(path, path.stat().st_size - 4),
    "another model": lambda path: zoo.save(zoo.compose("bahdanau-reversal"), path),
    "no record": lambda path: path.with_suffix(".sha256").unlink(),
    "binary record": lambda path: path.with_suffix(".sha256").write_bytes(b"\xff\0"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_copy_is_imported_again(damage: str, folder: Path, hub: Hub) -> None:
    path = find(folder)
    expected = path.read_bytes()
    changed = path.stat().st_ctime_ns
    DAMAGES[damage](path)
    while path.stat().st_ctime_ns == changed:
        path.touch()  # the clock of the file system is coarse
    assert find(folder) == path
    assert path.read_bytes() == expected


def test_a_copy_is_hashed_once_and_not_at_all_without_verification(
    hub: Hub, commit: str, folder: Path
) -> None:
    path = find(NAME)
    intact = path.stat()
    _flip_a_weight(path)
    assert find(NAME, options=Options(skip_hash_check=True)).stat().st_ino == intact.st_ino
    expected = find(NAME).stat()  # imported again
    os.utime(path)  # changes its times, so it is hashed, and kept
    assert find(NAME).stat().st_ino == expected.st_ino != intact.st_ino
    hub.requests.clear()
    _flip_a_weight(path)
    for shard in path.parents[2].glob("snapshots/*/*.safetensors"):
        shard.resolve().unlink()
    with pytest.raises(HubError, match=r"not complete in the cache .* missing or damaged: model-0"):
        find(NAME, options=Options(local_files_only=True))


def test_an_unsupported_architecture_is_rejected_before_its_weights_are_downloaded(
    hub: Hub, folder: Path
) -> None:
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    files["config.json"] = b'{"model_type": "unheard-of"}'
    hub.repo(NAME).add(files)
    with pytest.raises(ZooError, match="no importer supports model_type 'unheard-of'"):
        zoo.load(NAME)
    assert all("bytes=0-" in request.headers.get("range", "") for request in weight_requests(hub))


def weight_requests(hub: Hub) -> Sequence[object]:
    return [r for r in hub.requests_to("safetensors") if "index" not in r.path]


def test_a_local_folder_is_imported_once(hub: Hub, folder: Path, tmp_path: Path) -> None:
    path = find(folder)
    assert path.is_relative_to(tmp_path / "home" / "zoo" / "imported")
    assert find(str(folder)) == path
    assert torch.equal(logits(zoo.load(folder)), logits(zoo.load(path)))
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    first = find(copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 0.25}))
    second = find(copy)
    assert first != second
    assert not first.exists()
    assert path.exists()
    assert read_header(second).provenance["imported"] == "copy"


def test_a_registry_selects_the_importer(hub: Hub, commit: str) -> None:
    with pytest.raises(ZooError, match="no importer supports"):
        zoo.load(NAME, registry=ComponentRegistry([]))
    assert zoo.load(NAME, registry=default_registry()).spec is not None


def test_a_read_only_cache_is_reported(hub: Hub, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "zoo").write_text("a file where a folder is needed")
    with pytest.raises(HubError, match=r"cannot be stored in .*; set HF_HOME"):
        zoo.load(folder)


@pytest.mark.slow
def test_processes_import_a_repository_together(hub: Hub, commit: str, tmp_path: Path) -> None:
    code = f"import os, zoo; os.fork(); print(zoo.load({NAME!r}).spec['name'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(hub, tmp_path / "shared"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.stdout.splitlines() == ["llama"] * 2
    cached = [name for name in list_files(tmp_path / "shared") if ".zoo-imported" in name]
    assert sorted(Path(name).suffix for name in cached) == [".safetensors", ".sha256"]


def test_commands_take_a_repository(hub: Hub, commit: str) -> None:
    done = CliRunner().invoke(app, ["generate", NAME, "1 5 9", "--ids", "--max-length", "4"])
    assert (done.exit_code, len(done.output.split())) == (0, 4)
    hub.requests.clear()
    shown = CliRunner().invoke(app, ["info", NAME, "--json"])
    assert json.loads(shown.output)["provenance"]["commit"] == commit
    assert len(hub.requests) == 1
