"""Every command, in this process."""

import json
import re

import jsonschema
import pytest
from typer.testing import CliRunner

import zoo
from zoo.cli.commands import COMMANDS
from zoo.cli.main import app, main
from zoo.interfaces.signature import parameter_names
from zoo.registry.component_registry import default_registry
from zoo.spec.document import read_file
from zoo.spec.schema import spec_schema
from zoo.spec.training import Training


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


@pytest.mark.parametrize("verb", [None, *COMMANDS, "vectors"])
def test_help_shows_an_example(verb):
    text = run(*([verb] if verb else []), "--help")
    assert verb is None or f"Example: zoo {verb}" in " ".join(text.split())


@pytest.mark.parametrize("verb", [*COMMANDS, "vectors"])
def test_wrong_usage_exits_with_2(verb):
    run(verb, "--no-such-option", code=2)


def test_list_has_every_registered_component():
    rows = json.loads(run("list", "--json"))
    fields = {"kind", "name", "version", "plugin", "distribution", "paper", "summary"}
    for row in rows:
        assert set(row) == fields | ({"serves"} if row["kind"] == "acceleration" else set())
    found = {(row["kind"], row["name"]) for row in rows}
    assert found == {(e.kind, e.name) for e in default_registry().components()}
    assert {"additive", "dot"} <= {
        r["name"] for r in json.loads(run("list", "--kind", "scorer", "--json"))
    }
    assert "bahdanau-2015" in run("list", "--specs")
    assert "tagger of words, two bidirectional LSTM layers" in run("list", "--specs")


def test_list_of_an_unknown_kind_has_a_suggestion(capsys):
    assert "did you mean 'scorer'?" in _error(["list", "--kind", "scorrer"], capsys)


def test_help_does_not_interpret_brackets_as_markup():
    text = " ".join(run("info", "--help").replace("│", " ").split())
    assert "ORG/NAME or ORG/NAME@REVISION on the Hub" in text
    for verb in ("generate", "vectors", "catalogue"):
        assert "[[" not in run(verb, "--help")


def test_a_table_has_one_line_per_row_without_a_terminal():
    lines = run("list").splitlines()
    assert len(lines) == 1 + len(default_registry().components())
    assert run("catalogue").count("\n") == 1 + len(json.loads(run("catalogue", "--json")))


def test_show_wraps_paragraphs_and_prints_defaults():
    text = run("show", "attentive-rnn")
    rows = [line.split() for line in text.splitlines()]
    assert ["readout", "integer", ">=", "1", "or", "null", "null"] in rows
    assert ["cell", "rnn", "|", "lstm", "|", "gru", "|", "gru-cho", "gru"] in rows


def test_an_unknown_name_gets_a_suggestion_but_no_long_list(capsys):
    text = _error(["show", "aditive"], capsys)
    assert "'aditive'; did you mean 'additive'? (see 'zoo list' and 'zoo list --specs')" in text
    text = _error(["check", "bahdanau-2051"], capsys)
    assert text == (
        "no spec or file named 'bahdanau-2051'; did you mean 'bahdanau-2015'? "
        "(see 'zoo list --specs')\n"
    )


def test_show_prints_a_component_or_a_spec():
    text = run("show", "attentive-rnn")
    assert "maxout" in text
    assert "Attention (keys: scorer, align, heads, " in text
    assert "rnn | lstm | gru | gru-cho" in text
    assert "set by the parent" in text
    assert "type: seq2seq" in run("show", "luong-2015")
    assert "additive" in run("show", "bahdanau:additive")


def test_show_prints_every_section_and_key_of_a_spec():
    assert "train          see 'zoo show train'" in run("show", "spec")
    train = run("show", "train")
    for key in parameter_names(Training):
        assert f"\n    {key}: " in train, key
        assert f"\n{key} " in train, key
    assert "see 'zoo show train.batch'" in train
    assert "items      integer >= 1 or null" in run("show", "train.batch")
    assert run("show", "train.evaluate") == run("show", "Evaluation")
    assert "preprocessor; see 'zoo list --kind preprocessor'" in " ".join(
        run("show", "preprocessing").split()
    )


def test_show_prints_a_part_by_its_class_or_by_its_name():
    text = run("show", "feed-forward")
    assert text == run("show", "FeedForward")
    assert "used by encoder transformer, encoder attention-pooling, decoder transformer" in text
    assert "Position-wise feed-forward network" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["hidden", "integer", ">=", "1", "required"] in rows
    assert ["gated", "boolean", "false"] in rows


@pytest.mark.parametrize("name", ["attention", "feed-forward", "norm", "output", "pool"])
def test_show_lists_the_keys_of_a_part_where_a_component_takes_it(name):
    part = next(line for line in run("show", name).splitlines() if "part " in line)
    class_name = part.partition("part ")[2].partition(",")[0]
    shown = run("show", "convolution-layer" if name == "pool" else "transformer")
    line = next(line for line in shown.splitlines() if f"{class_name} (keys: " in line)
    schema = spec_schema(default_registry())["$defs"][class_name.lower()]
    keys = line.partition("(keys: ")[2].partition(")")[0].split(", ")
    own = schema["anyOf"][0] if "anyOf" in schema else schema  # the class, then its parts
    assert keys == list(own["properties"])


def test_list_prints_the_importers_of_plugins():
    rows = json.loads(run("list", "--importers", "--json"))
    found = [(row["name"], row["plugin"]) for row in rows]
    importers = [(i.name, p.name) for p in default_registry().plugins for i in p.importers]
    assert found == sorted(importers)
    assert all(row["summary"].endswith(".") for row in rows)
    assert re.search(r"gpt2 +huggingface +GPT-2", run("list", "--importers"))
    assert "llama2c" in run("list", "--maps")


def test_options_of_list_that_exclude_each_other(capsys):
    text = _error(["list", "--maps", "--importers"], capsys)
    assert text == "--kind, --specs, --maps and --importers cannot be combined\n"


def test_check_prints_the_tree_and_json(spec):
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


def test_check_prints_all_errors_with_their_places(spec):
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


def test_set_overrides_a_value_and_is_the_place_of_its_errors(spec, capsys):
    report = json.loads(run("check", spec, "--json", "--set", "model.encoder.hidden=30"))
    assert report["parameters"] > json.loads(run("check", spec, "--json"))["parameters"]
    text = _error(["check", str(spec), "--set", "model.encoder.hidden=-1"], capsys)
    assert "--set model.encoder.hidden=-1: model.encoder.hidden: is -1" in text


def test_info_of_a_composed_model(spec, tmp_path):
    file = tmp_path / "m.safetensors"
    assert "parameters" in run("compose", spec, "-o", file, "--seed", "4", "--dtype", "bfloat16")
    header = json.loads(run("info", file, "--json"))
    assert header["provenance"]["seed"] == 4
    assert {row["name"] for row in header["lock"]} == {"seq2seq", "token", "gru", "plain-rnn"}
    assert {tensor["dtype"] for tensor in header["tensors"]} == {"BF16"}
    text = run("info", file)
    assert "recurrent:gru" in text
    assert "attention-zoo" in text


def test_schema_accepts_shipped_specs_and_rejects_invalid_ones(tmp_path, spec):
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


def test_plugins_lists_what_each_plugin_offers():
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


def test_new_plugin_rejects_invalid_names_kinds_and_existing_folders(tmp_path, capsys):
    for name in ("Bad", "1st", "a_b", "class", "../x", ""):
        text = _error(["new-plugin", name, "--kind", "scorer", "-o", str(tmp_path)], capsys)
        assert f"'{name}'" in text
    assert "did you mean 'scorer'?" in _error(["new-plugin", "x", "--kind", "score"], capsys)
    run("new-plugin", "x", "--kind", "scorer", "-o", tmp_path)
    again = ["new-plugin", "x", "--kind", "scorer", "-o", str(tmp_path)]
    assert "already exists" in _error(again, capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["zoo-x"]


def test_options_of_list_cannot_be_combined(capsys):
    assert "cannot be combined" in _error(["list", "--specs", "--kind", "scorer"], capsys)


def _error(arguments, capsys):
    """Run a command through its entry point, expect exit code 1, return the message."""
    import sys

    before = sys.argv
    sys.argv = ["zoo", *arguments]
    try:
        with pytest.raises(SystemExit) as stop:
            main()
    finally:
        sys.argv = before
    printed = capsys.readouterr()
    assert stop.value.code == 1
    assert printed.out == ""
    assert "Traceback" not in printed.err
    return printed.err


def test_paragraphs_of_help_are_wrapped_to_the_terminal():
    from zoo.cli.wrapping import wrap_command

    def command() -> None:
        """Do this.

        A paragraph
        of two lines.

        - an entry
        """

    assert wrap_command(command).__doc__ == "Do this.\n\nA paragraph of two lines.\n\n- an entry"


def test_a_command_that_uses_a_missing_plugin_names_it():
    from zoo.cli.wrapping import wrap_command

    def command() -> None:
        import zoo_missing.part  # noqa: F401

    with pytest.raises(zoo.ZooError, match="needs the plugin 'zoo_missing', which is missing"):
        wrap_command(command)(verbose=False, quiet=False)


def test_entries_of_a_docstring_are_wrapped():
    from zoo.cli.show import _wrap_docstring

    text = "One.\n\n- ``file``, a table\n  with rows\n- another"
    assert _wrap_docstring(text, 20) == "One.\n\n- `file`, a table\n  with rows\n- another"
    assert _wrap_docstring(text, 14) == "One.\n\n- `file`, a\n  table with\n  rows\n- another"
