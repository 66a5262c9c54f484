"""Compose, push, pull elsewhere, load: bit for bit; and again without asking anybody."""

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


@pytest.mark.parametrize("shard_bytes", [None, 100_000], ids=["single", "shards"])
def test_another_process_with_another_cache_gets_the_same_bits_and_asks_nobody_twice(
    hub: Hub, model: zoo.Model, tmp_path: Path, shard_bytes: int | None
) -> None:
    pushed = zoo.push(model, NAME, shard_bytes=shard_bytes)
    home, here = tmp_path / "elsewhere", tmp_path / "project"
    here.mkdir()
    done = command(hub, home, "pull", NAME, "--json", here=here)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["commit"] == pushed.commit
    assert Path(told["path"]).is_relative_to(home)
    assert len(told["files"]) == (4 if shard_bytes else 1)
    assert f'"commit": "{pushed.commit}"' in (here / "zoo.lock").read_text()

    asked = len(hub.requests)
    done = python(hub, home, LOADED, here=here, HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    assert len(hub.requests) == asked
    assert_same_bits(dict(model.state_dict()), torch.load(here / "state.pt", weights_only=True))


def test_what_the_cache_has_costs_no_request_when_the_commit_is_known(
    hub: Hub, model: zoo.Model
) -> None:
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


def test_every_file_comes_from_the_commit_that_was_resolved_once(
    hub: Hub, model: zoo.Model
) -> None:
    """Somebody pushes while we pull: all files are still of one commit."""
    first = zoo.push(model, NAME)
    hub.requests.clear()
    hub.fault("/tree/", lambda a: (hub.repo(NAME).add({"config.json": b"other"}), a)[1])
    folder = fetch(NAME, ["*"])
    assert folder.name == first.commit
    assert (folder / "config.json").read_bytes() != b"other"
    commits = {r.path.split("/")[4] for r in hub.requests_to("/resolve/")}
    assert commits == {first.commit}


def test_the_conventional_methods_push_and_load(hub: Hub, model: zoo.Model, tmp_path: Path) -> None:
    commit = model.push_to_hub(NAME, private=True, commit_message="First", token=TOKEN)
    again = zoo.Model.from_pretrained(
        NAME, revision=commit, token=TOKEN, cache_dir=tmp_path / "c", force_download=True
    )
    assert_same_bits(all_tensors(model), all_tensors(again))
    assert type(Seq2Seq.from_pretrained(NAME, cache_dir=tmp_path / "c")) is Seq2Seq
    folder = model.save_pretrained(tmp_path / "folder")
    assert set(list_files(folder)) == {WEIGHTS, "config.json", "README.md", "tree.svg"}
    offline = zoo.Model.from_pretrained(folder, local_files_only=True)
    assert_same_bits(all_tensors(model), all_tensors(offline))


def test_a_class_that_is_not_the_models_is_refused(model: zoo.Model, tmp_path: Path) -> None:
    from zoo_language.language_model import LanguageModel

    folder = model.save_pretrained(tmp_path / "folder")
    with pytest.raises(ZooError, match="holds a 'seq2seq' model, no 'language-model'"):
        LanguageModel.from_pretrained(folder)


def test_a_large_file_goes_up_in_parts(hub: Hub, model: zoo.Model) -> None:
    hub.chunk = 50_000
    zoo.push(model, NAME)
    assert len(hub.requests_to("part=", "cdn")) == 6
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME)))


def test_weights_the_hub_has_already_are_not_sent_again(hub: Hub, saved: Path, model) -> None:
    zoo.push(saved, NAME)
    zoo.push(saved, "zoo-team/again")
    assert len([r for r in hub.requests_to(port="cdn") if r.method == "PUT"]) == 1


def theirs(hub: Hub, home: Path, code: str, **more: str) -> Any:
    """What the unmodified client makes of it: a process with nothing of the zoo in it."""
    code = f"import json, sys\nfrom huggingface_hub import *\n{code}"
    done = python(hub, home, code, here=home.parent, HF_HUB_DISABLE_PROGRESS_BARS="1", **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_real_client_reads_what_the_zoo_pushed(
    hub: Hub, model: zoo.Model, tmp_path: Path
) -> None:
    pushed = zoo.push(model, NAME)
    folder = Path(theirs(hub, tmp_path / "h", f"print(json.dumps(snapshot_download('{NAME}')))"))
    assert list_files(folder).keys() == {*pushed.files, ".gitattributes"}
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(folder)))


def test_the_real_client_uses_what_the_zoo_cached(hub: Hub, model: zoo.Model, cache: Path) -> None:
    zoo.push(model, NAME)
    pulled = zoo.pull(NAME)
    hub.requests.clear()
    path, warnings, repos = theirs(
        hub,
        cache.parent,
        f"report = scan_cache_dir()\nprint(json.dumps([hf_hub_download('{NAME}', '{WEIGHTS}'), "
        "list(map(str, report.warnings)), [r.repo_id for r in report.repos]]))",
        HF_HUB_OFFLINE="1",
    )
    assert Path(path) == pulled.path
    assert (warnings, repos) == ([], [NAME])
    assert hub.requests == []


def test_what_the_real_client_cached_is_checked_and_used_offline(
    hub: Hub, model: zoo.Model, cache: Path
) -> None:
    zoo.push(model, NAME)
    folder = Path(theirs(hub, cache.parent, f"print(json.dumps(snapshot_download('{NAME}')))"))
    hub.requests.clear()
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME, local_files_only=True)))
    for kept in cache.rglob("trees/*.json"):  # an older client keeps none
        kept.unlink()
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME, local_files_only=True)))
    assert hub.requests == []
    weights = (folder / WEIGHTS).resolve()
    weights.write_bytes(bytes(weights.stat().st_size))
    with pytest.raises(ZooError, match=r"missing or damaged: model\.safetensors"):
        zoo.load(NAME, local_files_only=True)


def test_hashing_what_the_cache_holds_can_be_switched_off(
    hub: Hub, model: zoo.Model, cache: Path
) -> None:
    zoo.push(model, NAME)
    weights = zoo.pull(NAME).path.resolve()
    flipped = bytearray(weights.read_bytes())
    flipped[-1] ^= 1  # in the last weight
    weights.write_bytes(flipped)
    taken = all_tensors(zoo.load(NAME, local_files_only=True, verify=False))
    assert (
        sum(
            not torch.equal(a, b)
            for a, b in zip(taken.values(), all_tensors(model).values(), strict=True)
        )
        == 1
    )
    with pytest.raises(ZooError, match="missing or damaged"):
        zoo.load(NAME, local_files_only=True)
    assert_same_bits(all_tensors(model), all_tensors(zoo.load(NAME)))


def test_the_test_hub_answers_the_real_client(hub: Hub, model: zoo.Model, tmp_path: Path) -> None:
    """So that a test against it says something about the real one."""
    pushed = zoo.push(model, NAME)
    info, tree, there = theirs(
        hub,
        tmp_path / "h",
        f"""
api = HfApi()
info = api.model_info("{NAME}", files_metadata=True)
files = {{s.rfilename: [s.size, s.blob_id, s.lfs and s.lfs.sha256] for s in info.siblings}}
tree = api.list_repo_tree("{NAME}", recursive=True)
rows = {{r.path: [r.size, r.blob_id, r.lfs and r.lfs.sha256] for r in tree}}
there = [api.file_exists("{NAME}", "config.json"), api.file_exists("{NAME}", "nothing.json"),
         api.repo_exists("{NAME}"), api.repo_exists("{NAME}x"), api.revision_exists("{NAME}", "v9")]
print(json.dumps([[info.sha, files], rows, there]))
""",
        HF_TOKEN=TOKEN,
    )
    assert info == [pushed.commit, tree]
    assert tree.keys() == {*pushed.files, ".gitattributes"}
    assert tree[WEIGHTS][2] == hashlib.sha256(zoo.pull(NAME).path.read_bytes()).hexdigest()
    assert there == [True, False, True, False, False]
