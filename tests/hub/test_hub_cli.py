"""`zoo pull`, `zoo push` and `zoo catalogue`, and references in other verbs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from docs_kit import run_page
from hub_kit import NAME, WEIGHTS
from hub_server import TOKEN, Hub
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.errors import HubError, RegistryError, SpecError


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.fixture
def published(hub: Hub, saved: Path) -> str:
    return hub.repo(NAME).add({WEIGHTS: saved.read_bytes()})


def test_push_pull_and_every_verb_that_takes_a_model(
    hub: Hub, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    pushed = json.loads(
        run("push", str(saved), NAME, "--private", "-m", "First", "--licence", "mit", "--json")
    )
    assert pushed["repository"] == NAME
    pulled = json.loads(run("pull", NAME, "--json"))
    assert pulled["commit"] == pushed["commit"]
    assert pulled["files"] == [WEIGHTS]
    assert "bahdanau-reversal" in run("info", NAME)
    assert json.loads(run("info", f"hub:{NAME}@main", "--json"))["spec"]["name"]
    generated = run("generate", NAME, "3 4 5", "--ids")
    assert generated == run("generate", str(saved), "3 4 5", "--ids")
    assert run("verify", NAME).startswith("ok")
    assert run("push", NAME, "zoo-team/copy").startswith(f"{hub.url}/zoo-team/copy: commit ")


def test_commands_of_the_documentation_run(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert run_page("hub.md", skip=("zoo import", "SmolLM2")) >= 8


def test_pull_prints_commit_and_path(hub: Hub, published: str) -> None:
    first, second = run("pull", f"{NAME}@main").splitlines()
    assert first == f"{NAME}@main: commit {published}"
    assert Path(second).is_file()
    hub.requests.clear()
    run("pull", NAME, "--offline")
    run("pull", NAME, "--locked")
    assert hub.requests == []
    run("pull", NAME, "--force", "--revision", published)
    assert len(hub.requests_to("objects", "cdn")) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pull", NAME, "--locked"], r"zoo\.lock does not list"),
        (["pull", NAME, "--offline"], "is not in the cache"),
        (["pull", "nobody/nothing"], "no repository nobody/nothing"),
        (["pull", "a/b/c"], "is not a repository name"),
        (["pull", "x"], "no file or catalogue entry named 'x'"),
        (["pull", "hub:"], "'hub:' is not a repository name"),
        (["pull", "./here.safetensors"], "here.safetensors is a local path; only models on"),
        (["pull", "here.safetensors"], "here.safetensors is a local path; only models on"),
        (["push", "x.safetensors", NAME, "--revision", "a" * 40], "a{40} is a commit; pushing to"),
        (["push", "x.safetensors", NAME], "no such file"),
        (["push", "x.safetensors", "x"], "is not a repository name"),
        (["info", "nobody/nothing"], "no repository nobody/nothing"),
        (["generate", "nobody/nothing", "x"], "no repository nobody/nothing"),
    ],
)
def test_errors_are_one_message(hub: Hub, arguments: list[str], message: str) -> None:
    Path("here.safetensors").touch()
    with pytest.raises(zoo.ZooError, match=message) as caught:
        run(*arguments)
    assert "\n" not in str(caught.value)


def test_catalogue_is_listed_and_searched(tmp_path: Path) -> None:
    everything = json.loads(run("catalogue", "--json"))
    keys = {"name", "spec", "paper", "licence", "weights", "shipped", "results", "catalogue"}
    assert set(everything[0]) == keys
    found = json.loads(run("catalogue", "VASWANI", "2017", "--json"))
    assert [model["name"] for model in found] == ["transformer-base", "transformer-big"]
    assert "transformer-big" in run("catalogue", "vaswani")
    assert "phoneme error rate 0.0596 (cmudict)" in run("catalogue", "g2p-bahdanau")
    assert "g2p-bahdanau" in run("catalogue", "phoneme")
    assert "no model matches" in run("catalogue", "nothing-of-the-kind")
    file = tmp_path / "more.yaml"
    weights = f"{{hub: me/mine, revision: {'a' * 40}}}"
    shipped = f"{{file: a/b.st, sha256: {'b' * 64}, bytes: 5200, dtype: bfloat16, recipe: r, "
    shipped += "data: [{name: d, licence: MIT}]}"
    file.write_text(
        "zoo: 1\nmodels:\n- {name: mine, spec: s, paper: p, licence: l, "
        f"weights: {weights}, shipped: {shipped}, "
        "results: [{metric: bleu, value: 3, dataset: d}]}\n"
    )
    (mine,) = json.loads(run("catalogue", "mine", "--catalogue", str(file), "--json"))
    assert mine["weights"]["hub"] == "me/mine"
    assert mine["results"][0]["value"] == 3
    assert mine["shipped"]["data"][0]["licence"] == "MIT"
    row = run("catalogue", "mine", "shipped", "--catalogue", str(file))
    assert f"shipped, 5.2 kB or me/mine@{'a' * 12}  bleu 3.0 (d)" in " ".join(row.split("\n"))
    assert "me/mine@aaaaaaaaaaaa  bleu 3.0 (d)" in run(
        "catalogue", "mine", "--catalogue", str(file)
    )
    file.write_text("zoo: 1\nmodels: 3\n")
    with pytest.raises(SpecError, match=r"more.yaml:2:9: models: should be a list"):
        run("catalogue", "--catalogue", str(file))


def test_help_imports_neither_torch_nor_huggingface_hub() -> None:
    code = (
        "import sys, zoo\n"
        "from zoo.cli.main import app\n"
        "try: app(['pull', '--help'])\n"
        "except SystemExit: pass\n"
        "print('huggingface_hub' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"
    assert "Example: zoo pull" in done.stdout


def test_help_shows_square_brackets() -> None:
    """rich would read them as markup."""
    assert "ORG/NAME@REVISION" in run("info", "--help")
    assert "[OPTIONS] [WORD]..." in run("catalogue", "--help")


def test_errors_are_zoo_errors() -> None:
    assert issubclass(HubError, zoo.ZooError)
    assert issubclass(RegistryError, zoo.ZooError)
