"""Every verb as a person or a program calls it, inside this process."""

import io
import json
import re

import jsonschema
import pytest
from typer.testing import CliRunner

import zoo
from zoo.cli import output
from zoo.cli.main import _VERBS, app, main
from zoo.registry.component_registry import default_registry
from zoo.spec.document import read_file


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(
        "zoo: 1\nname: mine\nmodel:\n  type: seq2seq\n"
        "  source: {type: token, vocab: 9, dim: 4}\n"
        "  encoder: {type: gru, hidden: 3}\n"
        "  decoder: {type: plain-rnn, hidden: 5}\n"
    )
    return path


@pytest.mark.parametrize("verb", [None, *_VERBS])
def test_help_shows_an_example(verb):
    text = run(*([verb] if verb else []), "--help")
    assert verb is None or f"Example: zoo {verb}" in " ".join(text.split())


@pytest.mark.parametrize("verb", _VERBS)
def test_wrong_usage_exits_with_2(verb):
    run(verb, "--no-such-option", code=2)


def test_list_names_everything_registered_with_the_agreed_fields():
    rows = json.loads(run("list", "--json"))
    fields = {"kind", "name", "version", "plugin", "distribution", "paper", "summary"}
    assert all(set(row) == fields for row in rows)
    found = {(row["kind"], row["name"]) for row in rows}
    assert found == {(e.kind, e.name) for e in default_registry().components()}
    assert {"additive", "dot"} <= {
        r["name"] for r in json.loads(run("list", "--kind", "scorer", "--json"))
    }
    assert "bahdanau-2015" in run("list", "--specs")


def test_list_of_an_unknown_kind_suggests(capsys):
    assert "did you mean 'scorer'?" in _error(["list", "--kind", "scorrer"], capsys)


def test_help_hides_nothing_behind_markup():
    text = " ".join(run("info", "--help").replace("│", " ").split())
    assert "ORG/NAME or ORG/NAME@REVISION on the Hub" in text
    for verb in ("generate", "vectors", "catalogue"):
        assert "[[" not in run(verb, "--help")


def test_a_table_has_a_line_a_row_where_no_terminal_is():
    lines = run("list").splitlines()
    assert len(lines) == 1 + len(default_registry().components())
    assert run("catalogue").count("\n") == 1 + len(json.loads(run("catalogue", "--json")))


def test_a_table_breaks_no_name_on_a_narrow_terminal(monkeypatch):
    class Narrow(io.StringIO):
        def isatty(self):
            return True

    screen = Narrow()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "xterm")
    rows = output.table("name", "summary", whole=("name",))
    rows.add_row("a-name-of-twenty-six-chars", "some words to be broken")
    output.print_table(rows)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).splitlines()
    assert lines[1].split() == ["a-name-of-twenty-six-chars", "some"]
    assert len(lines) == 5


def test_show_fills_paragraphs_and_says_defaults_as_yaml():
    text = run("show", "attentive-rnn")
    assert "The readout takes s_i, as equation 4 says" in " ".join(text.split())
    assert all(len(line) <= 120 for line in text.splitlines())
    rows = [line.split() for line in text.splitlines()]
    assert ["readout", "integer", ">=", "1", "or", "null", "null"] in rows
    assert ["cell", "rnn", "|", "lstm", "|", "gru", "|", "gru-cho", "gru"] in rows


def test_show_of_an_unknown_name_suggests_and_lists_no_hundred_others(capsys):
    text = _error(["show", "aditive"], capsys)
    assert "'aditive'; did you mean 'additive'? ('zoo list [--specs]' names all " in text
    text = _error(["check", "bahdanau-2051"], capsys)
    assert "did you mean 'bahdanau-2015'? ('zoo list --specs' names all " in text
    assert text.endswith("no file has this name\n")


def test_show_explains_a_component_and_prints_a_spec():
    text = run("show", "attentive-rnn")
    assert "maxout" in text
    assert "a part of kind attention" in text
    assert "rnn | lstm | gru | gru-cho" in text
    assert "given by the parent" in text
    assert "type: seq2seq" in run("show", "luong-2015")
    assert "additive" in run("show", "bahdanau:additive")


def test_check_prints_the_tree_and_its_json_has_the_agreed_form(spec):
    text = run("check", spec)
    assert "encoder" in text
    assert "ok  mine:" in text
    report = json.loads(run("check", spec, "--json"))
    model = zoo.compose(spec)
    assert report["ok"] is True
    assert report["parameters"] == sum(p.numel() for p in model.parameters())
    assert report["bytes"] == 4 * report["parameters"]
    assert [part["path"] for part in report["parts"]] == [
        "model",
        "model.source",
        "model.encoder",
        "model.decoder",
    ]
    assert {"kind", "type", "shape", "parameters", "bytes"} <= set(report["parts"][0])


def test_check_gives_all_errors_with_their_places(spec):
    spec.write_text(
        spec.read_text().replace("hidden: 3", "hiden: 3").replace("vocab: 9", "vocab: x")
    )
    report = json.loads(run("check", spec, "--json", code=1))
    assert report["ok"] is False
    assert [(e["line"], e["column"], e["path"]) for e in report["errors"]] == [
        (5, 32, "model.source.vocab"),
        (6, 24, "model.encoder.hiden"),
    ]
    assert all(set(e) == {"file", "line", "column", "path", "message"} for e in report["errors"])


def test_set_overrides_and_is_named_when_wrong(spec, capsys):
    report = json.loads(run("check", spec, "--json", "--set", "model.encoder.hidden=30"))
    assert report["parameters"] > json.loads(run("check", spec, "--json"))["parameters"]
    text = _error(["check", str(spec), "--set", "model.encoder.hidden=-1"], capsys)
    assert "--set model.encoder.hidden=-1:1:1: model.encoder.hidden: is -1" in text


def test_compose_and_info_tell_the_same_story(spec, tmp_path):
    file = tmp_path / "m.safetensors"
    assert "parameters" in run("compose", spec, "-o", file, "--seed", "4", "--dtype", "bfloat16")
    told = json.loads(run("info", file, "--json"))
    assert told["provenance"]["seed"] == 4
    assert {row["name"] for row in told["lock"]} == {"seq2seq", "token", "gru", "plain-rnn"}
    assert {tensor["dtype"] for tensor in told["tensors"]} == {"BF16"}
    text = run("info", file)
    assert "recurrent:gru" in text
    assert "attention-zoo" in text


def test_schema_accepts_shipped_specs_and_refuses_wrong_ones(tmp_path, spec):
    schema = json.loads(run("schema"))
    checker = jsonschema.Draft202012Validator(schema)
    checker.check_schema(schema)
    for offers in default_registry().specs.values():
        checker.validate(read_file(offers[0].path).data)
    checker.validate(zoo.load_spec("luong-2015").resolve())
    good = read_file(spec).data
    for path, value in (
        ("encoder", {"type": "gru", "hiden": 3}),
        ("encoder", {"type": "gru", "hidden": 0}),
        ("encoder", "additive"),
        ("encoder", {"type": "gru", "hidden": 3, "input_dim": 4}),
    ):
        bad = {**good, "model": {**good["model"], path: value}}
        assert not checker.is_valid(bad), value
    run("schema", "-o", tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text()) == schema


def test_plugins_lists_every_one_with_what_it_offers():
    rows = json.loads(run("plugins", "--json"))
    by_name = {row["name"]: row for row in rows}
    assert by_name["luong"]["status"] == "ok"
    assert by_name["luong"]["components"] == ["scorer dot", "scorer general", "scorer concat"]
    assert "attention-zoo" in run("plugins")


def test_test_plugin_prints_a_table_of_laws(capsys):
    text = run("test-plugin", "luong")
    assert "key-permutation" in text
    assert "0 failed" in text
    outcomes = json.loads(run("test-plugin", "alignment", "--json"))["outcomes"]
    assert {o["status"] for o in outcomes} == {"passed", "skipped"}
    assert {o["law"] for o in outcomes if o["status"] == "skipped"} == {"sample-statistics"}
    assert "did you mean 'luong'?" in _error(["test-plugin", "luomg"], capsys)


def test_new_plugin_refuses_bad_names_kinds_and_existing_folders(tmp_path, capsys):
    for name in ("Bad", "1st", "a_b", "class", "../x", ""):
        text = _error(["new-plugin", name, "--kind", "scorer", "-o", str(tmp_path)], capsys)
        assert "plugin name" in text
    assert "did you mean 'scorer'?" in _error(["new-plugin", "x", "--kind", "score"], capsys)
    run("new-plugin", "x", "--kind", "scorer", "-o", tmp_path)
    again = ["new-plugin", "x", "--kind", "scorer", "-o", str(tmp_path)]
    assert "already exists" in _error(again, capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["zoo-x"]


def test_demo_trains_draws_saves_and_reloads(tmp_path):
    text = run("demo", "--steps", "30", "-o", tmp_path / "out")
    assert "unseen sequences" in text
    assert "agree bit for bit" in text
    assert (tmp_path / "out" / "alignment.png").read_bytes().startswith(b"\x89PNG")
    assert zoo.load(tmp_path / "out" / "model.safetensors").spec["name"] == "bahdanau-reversal"


@pytest.mark.parametrize("spec", ["gpt2-tiny", "deepspeech-ctc-tiny", "show-attend-tell-soft-tiny"])
def test_demo_refuses_a_spec_that_cannot_reverse(spec, capsys):
    assert "reads tokens and answers them" in _error(["demo", spec], capsys)


def test_demo_says_before_it_trains_that_its_folder_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["demo", "-o", str(tmp_path / "file")])
    assert "cannot be made: File exists" in str(done.exception)
    assert "training" not in done.output


def test_list_takes_one_of_its_choices(capsys):
    assert "give one of them" in _error(["list", "--specs", "--kind", "scorer"], capsys)


def _error(arguments, capsys):
    """What a verb says when it fails with exit code 1, through the real entry point."""
    import sys

    before = sys.argv
    sys.argv = ["zoo", *arguments]
    try:
        with pytest.raises(SystemExit) as stop:
            main()
    finally:
        sys.argv = before
    said = capsys.readouterr()
    assert stop.value.code == 1
    assert said.out == ""
    assert "Traceback" not in said.err
    return said.err
