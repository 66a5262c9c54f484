"""Shell completion, through the variables that the scripts of the shells set."""

import os
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from zoo.cli.main import app

SHELLS = ("bash", "zsh", "fish")


def _complete(shell, line):
    """Return what a shell receives for a command line whose last word is completed."""
    words = line.split(" ")
    variables = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    env = {"_ZOO_COMPLETE": f"complete_{shell}", **variables}
    return CliRunner().invoke(app, [], prog_name="zoo", env=env).stdout


def _words(line):
    return _complete("bash", line).split()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("zoo che", "check"),
        ("zoo vect", "vectors"),
        ("zoo show addit", "additive"),
        ("zoo check bahdanau-20", "bahdanau-2015"),
        ("zoo generate tato", "tatoeba-por-eng-bahdanau"),
        ("zoo list --kind sco", "scorer"),
    ],
)
def test_every_shell_completes_commands_components_specs_and_models(shell, line, expected):
    text = _complete(shell, line)
    assert expected in text
    assert "quantised" not in text


def test_files_are_completed_next_to_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.yaml", "mine.safetensors", "other.txt"):
        (tmp_path / name).touch()
    (tmp_path / "my-run").mkdir()
    (tmp_path / "my-run" / "model.safetensors").touch()
    assert "mine.yaml" in _words("zoo check m")
    assert _words("zoo info m") == ["mine.safetensors", "my-run"]
    assert set(_words("zoo diff bahdanau-small m")) >= {"mine.yaml", "mine.safetensors", "my-run"}


def test_paths_are_left_to_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.yaml").touch()
    assert _complete("bash", "zoo check folder/").strip() == ""
    assert _complete("zsh", "zoo check folder/").strip() == "_files"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("zoo test-plugin luo", ["luong"]),
        ("zoo eval run --metrics bleu,ch", ["bleu,chrf"]),
        ("zoo generate run --sampler be", ["beam"]),
        ("zoo generate run --filter no-", ["no-repeat-ngram"]),
        ("zoo export run folder --to gpt2", ["gpt2"]),
        ("zoo import x --map llama2", ["llama2c"]),
        ("zoo train s --device c", ["cpu", "cuda", "cuda:0"]),
        ("zoo compare bahdanau-2", ["bahdanau-2015"]),
        ("zoo plan gpt2-s", ["gpt2-small"]),
    ],
)
def test_options_and_commands_of_plugins_are_completed(line, expected):
    assert _words(line) == expected


def test_completion_does_not_import_torch_and_uses_an_older_index(shell):
    shell.run("list")
    shell.environ = {"_ZOO_COMPLETE": "complete_bash", "COMP_WORDS": "zoo show add"}
    shell.environ["COMP_CWORD"] = "2"
    try:
        done = shell.run()
    finally:
        shell.environ = {}
    assert "additive" in done.stdout.split()
    assert not done.modules & {"torch", "zoo.cli.index.build", "zoo.cli.index.watched"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_with_its_script():
    lines = (
        'eval "$(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION=1 zoo --show-completion bash)"',
        "COMP_WORDS=(zoo check bahdanau-s); COMP_CWORD=2; _zoo_completion zoo",
        'echo "${COMPREPLY[@]}"',
    )
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    env = {**os.environ, "PATH": path}
    done = subprocess.run(["bash", "-c", "\n".join(lines)], env=env, capture_output=True, text=True)
    assert done.stdout == "bahdanau-small\n"
