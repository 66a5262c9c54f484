"""Exit codes of every command, its errors and its example."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from zoo.cli.commands import COMMANDS
from zoo.cli.index import load_index
from zoo.cli.main import app, main
from zoo.registry.component_registry import default_registry

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"

FAILURES = {
    "list": "list --kind none",
    "show": "show none-such",
    "check": "check none.yaml",
    "schema": "schema -o none/schema.json",
    "tokenizer": "tokenizer show none.json",
    "demo": "demo --device gpu9",
    "compose": "compose none.yaml -o m.safetensors",
    "train": "train none.yaml",
    "info": "info none.safetensors",
    "verify": "verify none.safetensors",
    "generate": "generate none.safetensors x",
    "predict": "predict none.safetensors x",
    "embed": "embed none.safetensors x",
    "attend": "attend none.safetensors x",
    "eval": "eval none.safetensors",
    "import": "import none -o m.safetensors",
    "export": "export none.safetensors folder",
    "merge": "merge none.safetensors -o m.safetensors",
    "catalogue": "catalogue --catalogue none.yaml",
    "pull": "pull none-such",
    "push": "push none.safetensors org/name",
    "plugins": None,  # lists what is installed, also plugins with problems
    "new-plugin": "new-plugin Bad --kind scorer",
    "test-plugin": "test-plugin none-such",
    "bench": "bench none-such",
    "reproduce": "reproduce none.yaml",
    "compare": "compare none.yaml --swap a=b",
    "plan": "plan none.yaml",
    "vectors": "vectors none.txt",
    "ui": None,  # a server
}
"""A command line of each command that fails."""
DIFF = "diff none.safetensors none.safetensors"
"""The exit code of a difference is 1, so that of an error is 2, as in ``diff``."""


def _main(line, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["zoo", *shlex.split(line)])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return stop.value.code, printed


def _plugin_commands():
    return {command.name: command for p in load_index().plugins for command in p.commands}


def test_every_command_is_listed_here():
    assert {*FAILURES, "diff"} == {*COMMANDS, *_plugin_commands()}


@pytest.mark.parametrize("line", [*filter(None, FAILURES.values()), DIFF])
def test_an_error_has_its_exit_code_and_its_reason_on_standard_error(
    line, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    code, printed = _main(line, capsys, monkeypatch)
    assert code == (2 if line == DIFF else 1)
    assert printed.out == "" or line.startswith("verify")
    assert printed.err.strip()
    assert not list(tmp_path.glob("*.safetensors"))


@pytest.mark.parametrize("verb", [*FAILURES, "diff"])
def test_invalid_usage_exits_with_2(verb, capsys, monkeypatch):
    code, printed = _main(f"{verb} --no-such-option", capsys, monkeypatch)
    assert code == 2
    assert printed.out == ""


def test_a_misspelt_option_is_suggested_also_of_plugins(capsys, monkeypatch):
    for line, expected in (
        ("train --ouput x", "'--output'"),
        ("tokenizer train --vocb 3", "'--vocab'"),
        ("vectors --cuont 3", "'--count'"),
        ("--verzion", "'--version'"),
    ):
        code, printed = _main(line, capsys, monkeypatch)
        assert code == 2
        assert f"Did you mean {expected}" in printed.err


def test_a_misspelt_command_is_suggested_also_of_plugins(capsys, monkeypatch):
    for word, expected in (("tain", "train"), ("compair", "compare"), ("vectrs", "vectors")):
        code, printed = _main(word, capsys, monkeypatch)
        assert code == 2
        assert f"No such command '{word}'. Did you mean '{expected}'?" in printed.err


@pytest.mark.parametrize(
    "line",
    [
        "generate g2p-bahdanau x",
        "predict ram-mnist x",
        "eval g2p-bahdanau --data type=parallel-text --data source=a --data target=b",
        "verify g2p-bahdanau",
        "bench",
        "reproduce g2p-bahdanau",
        "diff bahdanau-reversal bahdanau-reversal",
        "demo x",
    ],
)
def test_an_invalid_device_is_one_sentence(line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, printed = _main(f"{line} --device gpu9", capsys, monkeypatch)
    assert code == (2 if line.startswith("diff") else 1)
    assert "device 'gpu9' is unknown; did you mean 'cuda'?" in printed.err
    assert len(printed.err.splitlines()) == 1


def test_the_page_lists_the_exit_codes():
    rows = re.findall(r"^\| (\d+)", PAGE.read_text(encoding="utf-8"), re.M)
    assert rows == ["0", "1", "2", "130", "143"]
    help_text = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert "Exit codes: 0 success; 1 an error" in help_text


def _examples():
    modules = {name: module for name, module in COMMANDS.items() if name != "tokenizer"}
    tokenizer = COMMANDS["tokenizer"]
    return [
        *(module.EXAMPLE for module in modules.values()),
        *(tokenizer.EXAMPLE, tokenizer.SHOW_EXAMPLE, tokenizer.EXTRACT_EXAMPLE),
    ]


def _parse(example):
    """Parse a command line as the command does, without running it."""
    group = get_command(app)
    words = shlex.split(example)
    assert words.pop(0) == "zoo"
    context = group.make_context("zoo", [], resilient_parsing=True)
    name, command, rest = group.resolve_command(context, words)
    if name == "tokenizer":
        name, command, rest = command.resolve_command(context, rest)
    return command.make_context(name, list(rest), parent=context)


@pytest.mark.parametrize("example", _examples(), ids=lambda text: text.split()[1])
def test_the_example_of_a_command_is_valid(example):
    assert _parse(example).params


def test_the_examples_of_commands_of_plugins_are_valid():
    for name, command in _plugin_commands().items():
        assert command.example.startswith(f"zoo {name} "), name
        assert _parse(command.example).params


@pytest.mark.parametrize("verb", ["list", "show", "check", "catalogue", "plugins"])
def test_examples_with_names_run(verb):
    line = shlex.split(COMMANDS[verb].EXAMPLE)[1:]
    assert CliRunner().invoke(app, line).exit_code == 0


def test_names_of_specs_in_examples_exist():
    examples = [*_examples(), *(each.example for each in _plugin_commands().values())]
    words = {word for example in examples for word in shlex.split(example)}
    assert {"bahdanau-2015", "bahdanau-small", "bahdanau-reversal"} <= words
    assert {w for w in words if w.startswith("bahdanau-")} <= set(default_registry().specs)
