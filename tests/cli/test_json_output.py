"""``--json``: standard output is one JSON document, everything else is on standard error."""

import json

import pytest
from typer.testing import CliRunner

from zoo.cli.commands import COMMANDS
from zoo.cli.index import load_index
from zoo.cli.main import app

WITHOUT = {"attend", "demo", "schema", "ui"}
"""Shows for people, a view written to a file, and a command whose output is always JSON."""


def _run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    found = _run("compose", "bahdanau-reversal", "-o", path, "--json")
    assert found == {"file": str(path), "parameters": 68048, "bytes": path.stat().st_size}
    return path


def test_every_command_with_results_has_the_option():
    plugins = (command.name for plugin in load_index().plugins for command in plugin.commands)
    lines = [[verb] for verb in {*COMMANDS, *plugins} - WITHOUT - {"tokenizer"}]
    lines += [["tokenizer", verb] for verb in ("train", "show", "extract")]
    for line in lines:
        assert "--json" in CliRunner().invoke(app, [*line, "--help"]).stdout, line


def test_show_prints_components_parts_and_the_text_of_a_spec():
    found = _run("show", "additive", "--json")
    (component,) = found["components"]
    assert component["kind"] == "scorer"
    assert {row["name"] for row in component["parameters"]} >= {"hidden", "project"}
    assert found["spec"] is None
    assert _run("show", "attention", "--json")["parts"][0]["class_name"] == "Attention"
    assert "extends: " in _run("show", "bahdanau-reversal", "--json")["spec"]["text"]


def test_tokenizers_are_described(tmp_path):
    (tmp_path / "texts").write_text("a man sleeps\na dog plays\n")
    file = tmp_path / "t.json"
    trained = _run("tokenizer", "train", tmp_path / "texts", "-o", file, "--vocab", "300", "--json")
    assert trained["special"] == {"<pad>": 0, "<unk>": 1, "<s>": 2, "</s>": 3}
    assert trained["coverage"] == 1
    shown = _run("tokenizer", "show", file, "a dog", "--json")
    assert shown["decoded"] == "a dog"
    assert len(shown["ids"]) == len(shown["tokens"])
    assert shown["size"] == trained["size"]
    extracted = _run(
        *("tokenizer", "extract", "g2p-bahdanau", "-o", tmp_path / "x.json", "--json"),
        *("--key", "source"),
    )
    assert extracted["file"] == str(tmp_path / "x.json")


def test_a_new_plugin_prints_what_to_do_next(tmp_path):
    found = _run("new-plugin", "thing", "--kind", "scorer", "-o", tmp_path, "--json")
    assert found["folder"] == str(tmp_path / "zoo-thing")
    assert found["next"][1] == "zoo test-plugin thing"


def test_problems_of_a_spec_are_json_and_other_errors_a_line_on_standard_error(tmp_path):
    (tmp_path / "s.yaml").write_text("zoo: 1\nname: s\n")
    for verb in ("check", "plan"):
        assert _run(verb, tmp_path / "s.yaml", "--json", code=1)["ok"] is False
    found = _run("compose", tmp_path / "s.yaml", "-o", tmp_path / "m", "--json", code=1)
    assert found["errors"][0]["message"] == "key 'model' is missing"


def test_a_stream_has_no_json(model):
    done = CliRunner().invoke(app, ["generate", str(model), "x", "--json", "--stream"])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "not a stream" in done.stderr


def test_info_verify_and_generate_print_one_document(model):
    assert _run("info", model, "--json")["spec"]["name"] == "bahdanau-reversal"
    assert _run("verify", model, "--json")["ok"] is True
    (row,) = _run("generate", model, "5 6 7", "--ids", "--max-length", "3", "--json")
    assert row["input"] == "5 6 7"
    assert len(row["hypotheses"][0]["tokens"]) <= 3
