"""Specs: `extends`, and the round trip through the resolved form."""

import json
import os
from pathlib import Path

import pytest
import yaml
from spec_kit import BASE, single_problem

from zoo import load_spec
from zoo.errors import SpecError, ZooWarning
from zoo.registry.component_registry import default_registry
from zoo.spec.document import read_text
from zoo.spec.extending import MAX_EXTENDS
from zoo.spec.schema import spec_schema
from zoo.spec.spec import draft_spec

SHIPPED = sorted(default_registry().specs)


@pytest.fixture
def base(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path / "base.yaml"


def test_a_chain_of_specs_is_merged_with_the_nearest_last(base):
    (base.parent / "middle.yaml").write_text(
        "extends: base.yaml\nname: middle\nmodel: {bos: 3, eos: 4}\n"
    )
    child = base.parent / "child.yaml"
    child.write_text("extends: middle.yaml\nmodel: {bos: 5}\n")
    data = load_spec(child).resolve()
    assert (data["name"], data["model"]["bos"], data["model"]["eos"]) == ("middle", 5, 4)


def test_a_base_is_found_in_the_folder_of_the_spec(base, monkeypatch):
    inner = base.parent / "inner"
    inner.mkdir()
    (inner / "child.yaml").write_text("extends: ../base.yaml\nname: child\n")
    monkeypatch.chdir("/")
    assert load_spec(inner / "child.yaml").name == "child"
    assert load_spec({"extends": str(base), "name": "dict"}).name == "dict"


def test_a_folder_of_the_same_name_does_not_hide_a_shipped_spec(tmp_path, monkeypatch):
    (tmp_path / "bahdanau-2015").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_spec("bahdanau-reversal").name == "bahdanau-reversal"
    assert load_spec("bahdanau-2015").name == "bahdanau-2015"


def test_a_problem_has_the_file_that_contains_the_value(base):
    child = base.parent / "child.yaml"
    base.write_text(BASE.replace("hidden: 16", "hidden: many"))
    child.write_text("extends: base.yaml\nmodel: {decoder: {cell: gruu}}\n")
    found = {(p.path, p.place.file, p.place.line) for p in draft_spec(child).problems}
    assert found == {
        ("model.decoder.hidden", str(base), 9),
        ("model.decoder.cell", str(child), 2),
    }


def test_a_misspelt_name_in_the_base_is_reported_there_after_merging_with_a_mapping(base):
    child = base.parent / "child.yaml"
    base.write_text(BASE.replace("scorer: additive", "scorer: aditive"))
    child.write_text("extends: base.yaml\nmodel: {decoder: {attention: {scorer: {hidden: 5}}}}\n")
    problem = single_problem(child)
    assert (problem.place.file, problem.place.line, problem.place.column) == (str(base), 10, 25)


def test_duplicate_keys_of_base_and_child_are_both_reported(base):
    child = base.parent / "child.yaml"
    base.write_text(BASE + "zoo: 1\n")
    child.write_text("extends: base.yaml\nname: a\nname: b\n")
    found = [(p.place.file, p.place.line) for p in draft_spec(child).problems]
    assert found == [(str(base), 12), (str(child), 3)]


def test_problems_of_the_child_are_reported_with_an_unreadable_base(base):
    child = base.parent / "child.yaml"
    child.write_text("extends: nope.yaml\nname: a\nname: b\n")
    assert {p.place.line for p in draft_spec(child).problems} == {1, 3}


def test_the_line_of_a_base_that_is_not_yaml_is_reported(base):
    base.write_text("zoo: 1\nname: [\n")
    child = base.parent / "child.yaml"
    child.write_text("extends: base.yaml\n")
    assert "base.yaml:3:1" in str(single_problem(child))


@pytest.mark.parametrize("text", ["- a\n", "hello\n", "3\n"])
def test_a_base_that_is_not_a_mapping_is_rejected(base, text):
    base.write_text(text)
    child = base.parent / "child.yaml"
    child.write_text("extends: base.yaml\n" + BASE)
    assert "should be a mapping" in single_problem(child).message


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ("spec.yaml", "spec.yaml -> spec.yaml"),
        ("missing.yaml", "missing.yaml: no such file"),
        ("bahdanau-2051", "no spec or file named 'bahdanau-2051'; did you mean 'bahdanau-2015'?"),
        ("./", "is a directory without a model"),
        ("loop.yaml", "loop.yaml"),
        ('"nul\\0.yaml"', "cannot be read"),
        ("a" * 300, "no spec or file named 'aaa"),
        ("a" * 300 + ".yaml", "cannot be read: file name too long"),
        ("3", "should be the name or path of a spec"),
        ("[base.yaml]", "should be the name or path of a spec"),
        ("~", "should be the name or path of a spec"),
    ],
)
def test_a_base_that_cannot_be_read_is_reported_at_the_key_extends(tmp_path, extends, message):
    os.symlink("loop.yaml", tmp_path / "loop.yaml")
    file = tmp_path / "spec.yaml"
    file.write_text(f"zoo: 1\nextends: {extends}\n")
    problem = single_problem(file)
    assert (problem.place.line, problem.place.column, problem.path) == (2, 10, "extends")
    assert message in problem.message


def test_circular_specs_are_rejected(tmp_path):
    (tmp_path / "a.yaml").write_text("extends: b.yaml\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\n")
    assert "a.yaml -> b.yaml -> a.yaml" in single_problem(tmp_path / "a.yaml").message


def test_a_chain_that_is_too_long_is_rejected(tmp_path):
    for i in range(MAX_EXTENDS + 1):
        (tmp_path / f"{i}.yaml").write_text(f"extends: {i + 1}.yaml\nname: spec{i}\n")
    (tmp_path / f"{MAX_EXTENDS + 1}.yaml").write_text(BASE)
    assert load_spec(tmp_path / "2.yaml").name == "spec2"
    message = single_problem(tmp_path / "0.yaml").message
    assert f"exceeds {MAX_EXTENDS} levels: 0.yaml -> 1.yaml" in message


@pytest.mark.parametrize("source", ["nul\0.yaml", "a" * 5000, "", "bahdanau-2051"])
def test_an_unknown_name_raises(source):
    with pytest.raises(SpecError):
        load_spec(source)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_resolved_form_is_the_same_spec(name):
    resolved = load_spec(name).resolve()
    for again in (
        resolved,
        json.loads(json.dumps(resolved)),
        read_text(yaml.safe_dump(resolved), "x").data,
    ):
        assert load_spec(again).resolve() == resolved
        assert load_spec(again).providers() == load_spec(name).providers()


def test_reading_a_mapping_does_not_change_it(base):
    data = {"extends": str(base), "model": {"encoder": {"hidden": 3}}}
    before = json.dumps(data)
    load_spec(data, overrides=["model.encoder.hidden=4"])
    assert json.dumps(data) == before


def test_the_resolved_form_contains_defaults_and_qualified_names(base):
    model = load_spec(base).resolve()["model"]
    assert model["encoder"] == {
        "type": "recurrent:gru",
        "hidden": 8,
        "layers": 2,
        "bidirectional": False,
        "dropout": 0.0,
        "input_dropout": 0.0,
        "output_dropout": 0.0,
        "variant": "cudnn",
    }
    assert model["target"] is None


def test_providers_list_each_component_once(base):
    base.write_text(BASE.replace("[bleu, accuracy]", "[bleu, bleu, accuracy]"))
    providers = load_spec(base).providers()
    assert [(row["kind"], row["name"]) for row in providers] == [
        ("alignment", "soft"),
        ("decoder", "attentive-rnn"),
        ("embedding", "token"),
        ("encoder", "gru"),
        ("metric", "accuracy"),
        ("metric", "bleu"),
        ("model", "seq2seq"),
        ("scorer", "additive"),
    ]
    assert {row["distribution"] for row in providers} == {"attention-zoo"}
    assert providers[0]["plugin"] == "alignment"
    assert providers[0]["version"] == 1


def test_a_spec_of_another_format_is_not_read_further():
    (problem,) = draft_spec({"zoo": 9, "name": "later", "modell": {}}).problems
    assert problem.path == "zoo"
    assert problem.message.startswith("spec format 9 is not supported; this version reads format 1")
    assert "upgrade attention-zoo" in problem.message


def test_problems_are_in_the_order_of_lines(tmp_path):
    file = tmp_path / "spec.yaml"
    file.write_text(
        "zoo: 1\nname: mine\nmodel:\n  type: seq2seq\n"
        "  encoder: {type: gru, hidden: -1}\n"
        "  source: {type: token, vocab: -1, dim: 4}\n"
        "  decoder: {type: plain-rnn, hidden: -1}\n"
    )
    assert [p.place.line for p in draft_spec(file).problems] == [5, 6, 7]


def test_a_file_of_a_shipped_name_does_not_replace_the_spec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("transformer-tiny").write_text("not: a spec")
    with pytest.warns(ZooWarning, match=r"'transformer-tiny' is the spec .* \./transformer-tiny"):
        assert load_spec("transformer-tiny").name == "transformer-tiny"
    with pytest.raises(SpecError, match="not"):
        load_spec("./transformer-tiny")


def test_every_reference_of_the_schema_has_a_definition():
    schema = spec_schema(default_registry())

    def references(node):
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            node = list(node.values())
        for each in node if isinstance(node, list) else ():
            yield from references(each)

    missing = {ref for ref in references(schema) if ref.split("/")[-1] not in schema["$defs"]}
    assert missing == set()
