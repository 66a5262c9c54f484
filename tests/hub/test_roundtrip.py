"""Pushed and loaded models are bit-identical; cached models need no requests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from artifact_kit import all_tensors, assert_same_bits
from hub_kit import NAME, WEIGHTS, list_files, python, zoo as command
from hub_server import TOKEN, Hub

import zoo
from zoo.errors import ZooError
from zoo.hub import fetch
from zoo_seq2seq.seq2seq import Seq2Seq

LOADED = """
import sys, torch, zoo
model = zoo.load(sys.argv[1] if len(sys.argv) > 1 else "zoo-team/kit")
torch.save({k: v for k, v in model.state_dict().items()}, "state.pt")
"""


@pytest.fixture
def model(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> zoo.Model:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return zoo.compose("bahdanau-reversal", seed=5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shard_bytes", [None, pytest.param(100_000, marks=pytest.mark.slow)], ids=["single", "shards"]
)
def test_another_process_gets_identical_bits_and_then_needs_no_requests(
    hub: Hub, model: zoo.Model, tmp_path: Path, shard_bytes: int | None
) -> None:
    pushed = zoo.push(model, NAME, shard_bytes=shard_bytes)
    home, here = tmp_path / "elsewhere", tmp_path / "project"
    here.mkdir()
    done = command(hub, home, "pull", NAME, "--json", here=here)
    assert done.returncode == 0, done.stderr
    pulled = json.loads(done.stdout)
    assert pulled["commit"] == pushed.commit
    assert Path(pulled["path"]).is_relative_to(home)
    assert len(pulled["files"]) == (4 if shard_bytes else 1)
    assert f'"commit": "{pushed.commit}"' in (here / "zoo.lock").read_text()

    requests = len(hub.requests)
    done = python(hub, home, LOADED, here=here, HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    assert len(hub.requests) == requests
    assert_same_bits(dict(model.state_dict()), torch.load(here / "state.pt", weights_only=True))


def test_cached_commit_needs_no_request(hub: Hub, model: zoo.Model) -> None:
    pushed = zoo.push(model, NAME)
    zoo.load(NAME)
    hub.requests.clear()
    for again in (
        zoo.load(f"{NAME}@{pushed.commit}"),
        zoo.load(f"hub:{NAME}", revision=pushed.commit),
        zoo.load(NAME, local_files_only=True),
    ):
        assert_same_bits(all_tensors(model), all_tensors(again))
    assert hub.requests == []
    zoo.load(NAME)
    assert [r.path for r in hub.requests] == [f"/api/models/{NAME}/revision/main"]


def test_all_files_are_of_the_commit_resolved_first(hub: Hub, model: zoo.Model) -> None:
    """A push during the download does not mix commits."""
    first = zoo.push(model, NAME)
    hub.requests.clear()
    hub.fault("/tree/", lambda a: (hub.repo(NAME).add({"config.json": b"other"}), a)[1])
    folder = fetch(NAME, ["*"])
    assert folder.name == first.commit
    assert (folder / "config.json").read_bytes() != b"other"
    commits = {r.path.split("/")[4] for r in hub.requests_to("/resolve/")}
    assert commits == {first.commit}


def test_from_pretrained_save_pretrained_and_push_to_hub(
    hub: Hub, model: zoo.Model, tmp_path: Path
) -> None:
    commit = model.push_to_hub(NAME, private=True, commit_message="First", token=TOKEN)
    again = zoo.Model.from_pretrained(
        NAME, revision=commit, token=TOKEN, cache_dir=tmp_path / "c", force_download=True
    )
    assert_same_bits(all_tensors(model), all_tensors(again))
    assert isinstance(Seq2Seq.from_pretrained(NAME, cache_dir=tmp_path / "c"), Seq2Seq)
    folder = model.save_pretrained(tmp_path / "folder")
    assert set(list_files(folder)) == {WEIGHTS, "config.json", "README.md", "tree.svg"}
    offline = zoo.Model.from_pretrained(folder, local_files_only=True)
    assert_same_bits(all_tensors(model), all_tensors(offline))


def test_from_pretrained_of_another_class_raises(model: zoo.Model, tmp_path: Path) -> None:
    from zoo_language.language_model import LanguageModel

    folder = model.save_pretrained(tmp_path / "folder")
    with pytest.raises(ZooError, match=r"'seq2seq'.*'language-model'"):
        LanguageModel.from_pretrained(folder)


def test_large_file_is_uploaded_in_parts(hub: Hub, model: zoo.Model) -> None:
    hub.chunk = 50_000
    zoo.push(model, NAME)
    assert len(hub.requests_to("part=", "cdn")) == 6
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME)))


def test_weights_on_the_hub_are_not_uploaded_again(hub: Hub, saved: Path, model) -> None:
    zoo.push(saved, NAME)
    zoo.push(saved, "zoo-team/again")
    assert len([r for r in hub.requests_to(port="cdn") if r.method == "PUT"]) == 1


def run_client(hub: Hub, home: Path, code: str, **more: str) -> Any:
    """Run code with huggingface_hub in a process without this library. Return its JSON output."""
    code = f"import json, sys\nfrom huggingface_hub import *\n{code}"
    done = python(hub, home, code, here=home.parent, HF_HUB_DISABLE_PROGRESS_BARS="1", **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_huggingface_hub_downloads_a_pushed_model(
    hub: Hub, model: zoo.Model, tmp_path: Path
) -> None:
    pushed = zoo.push(model, NAME)
    folder = Path(
        run_client(hub, tmp_path / "h", f"print(json.dumps(snapshot_download('{NAME}')))")
    )
    assert list_files(folder).keys() == {*pushed.files, ".gitattributes"}
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(folder)))


def test_huggingface_hub_uses_the_cache(hub: Hub, model: zoo.Model, cache: Path) -> None:
    zoo.push(model, NAME)
    pulled = zoo.pull(NAME)
    hub.requests.clear()
    path, warnings, repos = run_client(
        hub,
        cache.parent,
        f"report = scan_cache_dir()\nprint(json.dumps([hf_hub_download('{NAME}', '{WEIGHTS}'), "
        "list(map(str, report.warnings)), [r.repo_id for r in report.repos]]))",
        HF_HUB_OFFLINE="1",
    )
    assert Path(path) == pulled.path
    assert (warnings, repos) == ([], [NAME])
    assert hub.requests == []


def test_cache_of_huggingface_hub_is_checked_and_used_offline(
    hub: Hub, model: zoo.Model, cache: Path
) -> None:
    zoo.push(model, NAME)
    folder = Path(run_client(hub, cache.parent, f"print(json.dumps(snapshot_download('{NAME}')))"))
    hub.requests.clear()
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME, local_files_only=True)))
    for file_list in cache.rglob("trees/*.json"):  # older clients cache no file list
        file_list.unlink()
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME, local_files_only=True)))
    assert hub.requests == []
    weights = (folder / WEIGHTS).resolve()
    weights.write_bytes(bytes(weights.stat().st_size))
    with pytest.raises(ZooError, match=r"missing or damaged: model\.safetensors"):
        zoo.load(NAME, local_files_only=True)


def test_verify_false_skips_hashing_cached_files(hub: Hub, model: zoo.Model, cache: Path) -> None:
    zoo.push(model, NAME)
    weights = zoo.pull(NAME).path.resolve()
    flipped = bytearray(weights.read_bytes())
    flipped[-1] ^= 1  # in the last weight
    weights.write_bytes(flipped)
    loaded = all_tensors(zoo.load(NAME, local_files_only=True, verify=False))
    assert (
        sum(
            not torch.equal(a, b)
            for a, b in zip(loaded.values(), all_tensors(model).values(), strict=True)
        )
        == 1
    )
    with pytest.raises(ZooError, match="missing or damaged"):
        zoo.load(NAME, local_files_only=True)
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME)))


def test_test_hub_works_with_huggingface_hub(hub: Hub, model: zoo.Model, tmp_path: Path) -> None:
    """The test hub must behave like the real one."""
    pushed = zoo.push(model, NAME)
    info, tree, exists = run_client(
        hub,
        tmp_path / "h",
        f"""
api = HfApi()
info = api.model_info("{NAME}", files_metadata=True)
files = {{s.rfilename: [s.size, s.blob_id, s.lfs and s.lfs.sha256] for s in info.siblings}}
tree = api.list_repo_tree("{NAME}", recursive=True)
rows = {{r.path: [r.size, r.blob_id, r.lfs and r.lfs.sha256] for r in tree}}
exists = [api.file_exists("{NAME}", "config.json"), api.file_exists("{NAME}", "nothing.json"),
         api.repo_exists("{NAME}"), api.repo_exists("{NAME}x"), api.revision_exists("{NAME}", "v9")]
print(json.dumps([[info.sha, files], rows, exists]))
""",
        HF_TOKEN=TOKEN,
    )
    assert info == [pushed.commit, tree]
    assert tree.keys() == {*pushed.files, ".gitattributes"}
    assert tree[WEIGHTS][2] == hashlib.sha256(zoo.pull(NAME).path.read_bytes()).hexdigest()
    assert exists == [True, False, True, False, False]
