"""References: paths, repositories and catalogue names."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hub_kit import NAME, WEIGHTS
from hub_server import Hub
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.errors import ArtifactError, HubError, RegistryError, ZooError
from zoo.hub.models import find, read_header
from zoo.hub.reference import Reference, parse_reference
from zoo_exchange.importing import resolve_source

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "revision", "repo", "at"),
    [
        ("a/b", None, "a/b", "main"),
        ("hub:a/b", None, "a/b", "main"),
        ("hub:a/b@v1.0", None, "a/b", "v1.0"),
        ("a/b@refs/pr/3", None, "a/b", "refs/pr/3"),
        ("a/b", "v2", "a/b", "v2"),
        ("a/b@v2", "v2", "a/b", "v2"),
        (f"A-1/b_2.c@{COMMIT}", None, "A-1/b_2.c", COMMIT),
    ],
)
def test_repository_is_parsed(text: str, revision: str | None, repo: str, at: str) -> None:
    assert parse_reference(text, revision) == Reference(repo, at)


def test_two_revisions_raise() -> None:
    with pytest.raises(HubError, match=r"'v1'.*'v2'"):
        parse_reference("a/b@v1", "v2")


def test_existing_path_takes_precedence_over_the_hub(hub: Hub, saved: Path) -> None:
    Path("zoo-team").mkdir()
    shutil.copy(saved, NAME)
    assert zoo.load(NAME).spec == zoo.load(saved).spec
    Path(NAME).unlink()
    Path(NAME).mkdir()
    shutil.copy(saved, Path(NAME) / WEIGHTS)
    assert zoo.load(NAME).spec == zoo.load(saved).spec
    assert hub.requests == []
    with pytest.raises(HubError, match="no repository"):
        zoo.load(f"hub:{NAME}")
    assert hub.requests
    with pytest.raises(HubError, match="is a local path; revision"):
        zoo.load(NAME, revision="main")


@pytest.mark.parametrize("name", ["./a/b", "/no/where", "~/x", "m.safetensors", "a/b/c", "a/b/"])
def test_names_like_paths_are_paths(hub: Hub, name: str) -> None:
    with pytest.raises(ArtifactError, match="no such file"):
        zoo.load(name)
    with pytest.raises(ArtifactError, match="no such file"):
        zoo.load(Path("a/b"))
    assert hub.requests == []


@pytest.mark.parametrize("name", ["", "\0", "hub:", "hub:x", "@", "a\nb", "hub:../x", "é/é"])
def test_invalid_names_raise(hub: Hub, name: str) -> None:
    with pytest.raises(ZooError):
        zoo.load(name)
    assert hub.requests == []


CATALOGUE = """
zoo: 1
models:
  - name: kit
    spec: bahdanau-reversal
    paper: None
    licence: MIT
    weights: {{hub: zoo-team/kit, revision: {commit}, sha256: "{sha256}"}}
"""


def test_catalogue_name_uses_its_commit_and_hash(
    hub: Hub, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = hub.repo(NAME).add({WEIGHTS: saved.read_bytes()})
    hub.repo(NAME).add({WEIGHTS: b"something newer"})
    row = hub.repo(NAME).commits[commit][WEIGHTS]
    file = tmp_path / "more.yaml"
    file.write_text(CATALOGUE.format(commit=commit, sha256=row.sha256))
    assert zoo.pull("kit", catalogues=[file]).commit == commit
    monkeypatch.setattr("zoo.hub.catalogue.builtin_file", lambda: file)
    assert find("kit").read_bytes() == saved.read_bytes()
    assert zoo.load("kit").spec == zoo.load(saved).spec
    with pytest.raises(HubError, match=f"lists 'kit' at revision {commit}, not 'main'"):
        zoo.load("kit", revision="main")
    file.write_text(CATALOGUE.format(commit=commit, sha256="0" * 64))
    with pytest.raises(HubError, match="expects 0000"):
        zoo.load("kit")


def test_catalogue_name_without_weights_or_entry_raises(hub: Hub) -> None:
    with pytest.raises(RegistryError, match="has no weights for 'vit-base'; 'zoo compose vit-b"):
        zoo.load("vit-base")
    with pytest.raises(RegistryError, match="no file or catalogue entry named 'vit-bass'"):
        zoo.load("vit-bass")
    assert hub.requests == []


@pytest.mark.parametrize(
    "use", [zoo.load, find, read_header, resolve_source, lambda name: app_error("info", name)]
)
def test_a_missing_path_in_an_existing_folder_is_not_requested(hub: Hub, use: Any) -> None:
    Path("hf").mkdir()
    with pytest.raises(HubError, match=r"hf/bert does not exist, .* \./hf/bert .* hub:hf/bert"):
        use("hf/bert")
    assert hub.requests == []
    for name in ("hub:hf/bert", "hf/bert@main"):
        with pytest.raises(HubError, match="no repository"):
            use(name)
    assert hub.requests


def app_error(*arguments: str) -> None:
    """Run a command and raise its error."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exception is not None
    raise done.exception
