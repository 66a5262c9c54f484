"""Code and pickles in repositories are not downloaded, imported or executed."""

from __future__ import annotations

import io
import json
import pickle
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from artifact_kit import rewrite
from hub_kit import NAME, WEIGHTS, list_files
from hub_server import Hub

import zoo
from zoo.errors import ArtifactError, HubError, SpecError
from zoo.hub import fetch

RAN = "ran_by_a_repository"


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (exec, (f"open({str(self.path)!r}, 'w').write('ran')",))


def pickles(path: Path) -> dict[str, bytes]:
    """Return a harmful pickle as plain bytes, as a torch file and as a zip bomb."""
    plain = pickle.dumps(Bomb(path))
    saved = io.BytesIO()
    torch.save(Bomb(path), saved)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", plain)
        archive.writestr("archive/data/0", bytes(30_000_000))
    return {"pickle": plain, "torch": saved.getvalue(), "zip bomb": bomb.getvalue()}


@pytest.fixture
def mark(tmp_path: Path):
    """A file that must not be created."""
    path = tmp_path / RAN
    yield path
    assert not path.exists()
    assert RAN not in sys.modules


CODE = {
    "config.json": json.dumps(
        {
            "_target_": "os.system",
            "auto_map": {"AutoModel": f"{RAN}.Model"},
            "architecture": f"{RAN}:Model",
            "model_type": "../../x",
            "trust_remote_code": True,
        }
    ).encode(),
    "conftest.py": b"1/0",
    "__init__.py": b"1/0",
}


def test_code_next_to_a_model_is_not_downloaded(
    hub: Hub, saved: Path, cache: Path, mark: Path
) -> None:
    code = f"open({str(mark)!r}, 'w').write('ran')".encode()
    hub.repo(NAME).add({**CODE, f"{RAN}.py": code, WEIGHTS: saved.read_bytes()})
    assert zoo.load(NAME).spec == zoo.load(saved).spec
    zoo.pull(NAME)
    fetch(NAME, ["*"])
    assert {p.name for p in cache.rglob("snapshots/*/*")} == {WEIGHTS, "config.json"}
    assert not hub.requests_to(r"\.py")
    with pytest.raises(HubError, match="is not downloaded: only data files are allowed"):
        fetch(NAME, [f"{RAN}.py"])


NAMING_CODE = {
    "_target_": {"_target_": "os.system", "command": "true"},
    "a dotted path": {"type": "os.system"},
    "a module and a class": {"type": f"{RAN}:Model"},
    "a file": {"type": f"./{RAN}.py"},
    "auto_map": {"type": "seq2seq", "auto_map": {"AutoModel": f"{RAN}.Model"}},
    "a python tag": {"type": "!!python/object/apply:os.system"},
    "an import": {"type": f"__import__('{RAN}')"},
}


@pytest.mark.parametrize("name", NAMING_CODE)
def test_spec_that_names_code_raises(
    hub: Hub, saved: Path, tmp_path: Path, mark: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{RAN}.py").write_text(f"open({str(mark)!r}, 'w').write('ran')")
    spec = {"zoo": 1, "name": "kit", "model": NAMING_CODE[name]}
    message = r"no model named|unknown key 'auto_map'|key 'type'|needs 'type'"
    with pytest.raises(SpecError, match=message):
        zoo.check(spec)
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(saved.read_bytes())
    rewrite(copy, spec=json.dumps(spec))
    hub.repo(NAME).add({WEIGHTS: copy.read_bytes()})
    with pytest.raises(
        ArtifactError,
        match=f"spec is not valid.*:\n(.*\n)*.*({message})",
    ):
        zoo.load(NAME)


@pytest.mark.parametrize("kind", ["pickle", "torch", "zip bomb"])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pkl", "model.ckpt"])
def test_repository_of_pickles_raises(
    hub: Hub, cache: Path, mark: Path, kind: str, name: str
) -> None:
    hub.repo(NAME).add({name: pickles(mark)[kind], "config.json": b"{}"})
    for call in (zoo.load, zoo.pull):
        with pytest.raises(HubError, match=f"it has {name}, but pickles are not supported"):
            call(NAME)
    with pytest.raises(HubError, match="no code and no pickles"):
        fetch(NAME, [name])
    fetch(NAME, ["*"])
    assert not [p for p in list_files(cache) if p.endswith(name)]


@pytest.mark.parametrize("kind", ["pickle", "torch", "zip bomb"])
def test_renamed_pickle_raises(hub: Hub, mark: Path, tmp_path: Path, kind: str) -> None:
    hub.repo(NAME).add({WEIGHTS: pickles(mark)[kind]})
    with pytest.raises(
        HubError, match=r"is not a model of this library: .*is a pickle \(torch.save"
    ):
        zoo.pull(NAME)
    assert not Path("zoo.lock").exists()
    with pytest.raises(ArtifactError, match="is a pickle"):
        zoo.load(NAME)
    local = tmp_path / "model.safetensors"
    local.write_bytes(pickles(mark)[kind])
    with pytest.raises(ArtifactError, match="is a pickle"):
        zoo.load(local)


def test_model_of_another_library_raises(hub: Hub, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"w": torch.ones(2)}, tmp_path / "x.safetensors")
    hub.repo(NAME).add({WEIGHTS: (tmp_path / "x.safetensors").read_bytes()})
    with pytest.raises(
        HubError, match=f"{NAME}@main is not a model of this library: .* contains no spec"
    ):
        zoo.pull(NAME)
    assert not Path("zoo.lock").exists()


def test_large_model_of_another_library_raises_before_the_download(
    hub: Hub, tmp_path: Path
) -> None:
    from safetensors.torch import save_file

    save_file({"w": torch.ones(3_000_000)}, tmp_path / "x.safetensors")
    hub.repo(NAME).add({WEIGHTS: (tmp_path / "x.safetensors").read_bytes()})
    with pytest.raises(
        HubError, match=f"{NAME}@main is not a model of this library: .* contains no spec"
    ):
        zoo.pull(NAME)
    with pytest.raises(ArtifactError, match="contains no spec"):
        zoo.load(NAME)
    ranges = [request.headers.get("range") for request in hub.requests_to("objects", "cdn")]
    assert ranges == ["bytes=0-65535"] * 2


def test_repository_without_weights_lists_its_files(hub: Hub) -> None:
    hub.repo(NAME).add({"notes.txt": b"1"})
    with pytest.raises(HubError, match=r"has no model.safetensors .*notes.txt"):
        zoo.load(NAME)
