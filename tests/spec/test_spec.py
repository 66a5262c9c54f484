"""Specs: extends, overrides, and the round trip through their resolved form."""

import json
import os

import pytest
import yaml
from timing_kit import assert_fast

from zoo import load_spec
from zoo.errors import SpecError
from zoo.registry.component_registry import default_registry
from zoo.spec.document import read_text
from zoo.spec.spec import MAX_EXTENDS, draft_spec

BASE = """\
zoo: 1
name: base
model:
  type: seq2seq
  source: {type: token, vocab: 16, dim: 4}
  encoder: {type: gru, hidden: 8, layers: 2}
  decoder:
    type: attentive-rnn
    hidden: 16
    attention: {scorer: additive, align: soft}
metrics: [bleu, accuracy]
"""
SHIPPED = sorted(default_registry().specs)


@pytest.fixture
def base(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path / "base.yaml"


def extended(base, text):
    """What a spec with this text, which extends the base, resolves to."""
    child = base.parent / "child.yaml"
    child.write_text("extends: base.yaml\n" + text)
    return load_spec(child).resolve()


def the_problem(source, *overrides):
    (problem,) = draft_spec(source, overrides=overrides).problems
    return problem


def test_mappings_mix_key_by_key(base):
    data = extended(base, "name: child\nmodel: {encoder: {hidden: 32}}\n")
    assert data["name"] == "child"
    assert data["model"]["encoder"]["hidden"] == 32
    assert data["model"]["encoder"]["layers"] == 2
    assert data["model"]["source"]["vocab"] == 16


def test_naming_another_type_replaces_the_part(base):
    data = extended(base, "model: {encoder: {type: lstm, hidden: 4}}\n")
    assert data["model"]["encoder"]["type"] == "recurrent:lstm"
    assert data["model"]["encoder"]["layers"] == 1


def test_naming_the_same_type_again_still_mixes(base):
    data = extended(base, "model: {encoder: {type: gru, hidden: 4}}\n")
    assert data["model"]["encoder"]["layers"] == 2


def test_a_bare_name_becomes_a_mapping_when_one_is_laid_over_it(base):
    data = extended(base, "model: {decoder: {attention: {scorer: {hidden: 5}}}}\n")
    scorer = data["model"]["decoder"]["attention"]["scorer"]
    assert scorer == {"type": "bahdanau:additive", "hidden": 5}


def test_a_bare_name_laid_over_a_mapping_replaces_it(base):
    child = base.parent / "child.yaml"
    child.write_text("extends: base.yaml\nmodel: {encoder: lstm}\n")
    problem = the_problem(child)
    assert problem.message == "key 'hidden' is missing"
    assert (problem.place.file, problem.place.line, problem.place.column) == (str(child), 2, 18)


def test_lists_are_replaced(base):
    data = extended(base, "metrics: [sequence-accuracy]\n")
    assert [m["type"] for m in data["metrics"]] == ["metrics:sequence-accuracy"]


def test_null_clears_an_optional_part(base):
    assert extended(base, "sampler: greedy\n")["sampler"] is not None
    assert extended(base, "sampler: ~\n")["sampler"] is None


def test_a_chain_of_specs_is_laid_over_one_another_nearest_last(base):
    (base.parent / "middle.yaml").write_text(
        "extends: base.yaml\nname: middle\nmodel: {bos: 3, eos: 4}\n"
    )
    child = base.parent / "child.yaml"
    child.write_text("extends: middle.yaml\nmodel: {bos: 5}\n")
    data = load_spec(child).resolve()
    assert (data["name"], data["model"]["bos"], data["model"]["eos"]) == ("middle", 5, 4)


def test_a_base_is_found_beside_the_spec_that_names_it(base, monkeypatch):
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


def test_faults_point_at_the_file_that_holds_the_faulty_value(base):
    child = base.parent / "child.yaml"
    base.write_text(BASE.replace("hidden: 16", "hidden: many"))
    child.write_text("extends: base.yaml\nmodel: {decoder: {cell: gruu}}\n")
    found = {(p.path, p.place.file, p.place.line) for p in draft_spec(child).problems}
    assert found == {
        ("model.decoder.hidden", str(base), 9),
        ("model.decoder.cell", str(child), 2),
    }


def test_a_misspelt_bare_name_is_found_in_the_base_though_a_mapping_is_laid_over_it(base):
    child = base.parent / "child.yaml"
    base.write_text(BASE.replace("scorer: additive", "scorer: aditive"))
    child.write_text("extends: base.yaml\nmodel: {decoder: {attention: {scorer: {hidden: 5}}}}\n")
    problem = the_problem(child)
    assert (problem.place.file, problem.place.line, problem.place.column) == (str(base), 10, 25)


def test_duplicate_keys_of_base_and_child_are_both_told(base):
    child = base.parent / "child.yaml"
    base.write_text(BASE + "zoo: 1\n")
    child.write_text("extends: base.yaml\nname: a\nname: b\n")
    found = [(p.place.file, p.place.line) for p in draft_spec(child).problems]
    assert found == [(str(base), 12), (str(child), 3)]


def test_faults_of_the_child_are_told_beside_a_base_that_cannot_be_read(base):
    child = base.parent / "child.yaml"
    child.write_text("extends: nope.yaml\nname: a\nname: b\n")
    assert {p.place.line for p in draft_spec(child).problems} == {1, 3}


def test_the_line_of_a_base_that_is_no_yaml_is_told(base):
    base.write_text("zoo: 1\nname: [\n")
    child = base.parent / "child.yaml"
    child.write_text("extends: base.yaml\n")
    assert "base.yaml:3:1" in str(the_problem(child))


@pytest.mark.parametrize("text", ["- a\n", "hello\n", "3\n"])
def test_a_base_that_is_no_mapping_is_refused(base, text):
    base.write_text(text)
    child = base.parent / "child.yaml"
    child.write_text("extends: base.yaml\n" + BASE)
    assert "should be a mapping" in the_problem(child).message


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ("spec.yaml", "goes in a circle or too deep: spec.yaml -> spec.yaml"),
        ("missing.yaml", "missing.yaml: cannot be read: no such file or directory"),
        ("bahdanau-2051", "no spec named 'bahdanau-2051'; did you mean 'bahdanau-2015'?"),
        ("./", "is a directory, not a spec file"),
        ("loop.yaml", "loop.yaml"),
        ('"nul\\0.yaml"', "cannot be read"),
        ("a" * 300, "no spec named 'aaa"),
        ("a" * 300 + ".yaml", "cannot be read: file name too long"),
        ("3", "should name the spec to build on"),
        ("[base.yaml]", "should name the spec to build on"),
        ("~", "should name the spec to build on"),
    ],
)
def test_a_base_that_cannot_be_had_is_refused_where_it_is_named(tmp_path, extends, message):
    os.symlink("loop.yaml", tmp_path / "loop.yaml")
    file = tmp_path / "spec.yaml"
    file.write_text(f"zoo: 1\nextends: {extends}\n")
    problem = the_problem(file)
    assert (problem.place.line, problem.place.column, problem.path) == (2, 10, "extends")
    assert message in problem.message


def test_a_circle_of_specs_is_refused(tmp_path):
    (tmp_path / "a.yaml").write_text("extends: b.yaml\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\n")
    assert "a.yaml -> b.yaml -> a.yaml" in the_problem(tmp_path / "a.yaml").message


def test_a_chain_that_is_too_long_is_refused(tmp_path):
    for i in range(MAX_EXTENDS + 1):
        (tmp_path / f"{i}.yaml").write_text(f"extends: {i + 1}.yaml\nname: spec{i}\n")
    (tmp_path / f"{MAX_EXTENDS + 1}.yaml").write_text(BASE)
    assert load_spec(tmp_path / "2.yaml").name == "spec2"
    assert (
        "goes in a circle or too deep: 0.yaml -> 1.yaml" in the_problem(tmp_path / "0.yaml").message
    )


def test_overrides_are_laid_over_the_spec_in_their_order(base):
    overrides = [
        "model.encoder.hidden=32",
        "name=other",
        "model.encoder.hidden=64",
        "sampler=greedy",
    ]
    data = load_spec(base, overrides=overrides).resolve()
    assert (data["model"]["encoder"]["hidden"], data["name"]) == (64, "other")
    assert data["model"]["encoder"]["layers"] == 2
    assert data["sampler"]["type"] == "sampling:greedy"


@pytest.mark.parametrize("nothing", ["~", "null", ""])
def test_an_override_can_clear_an_optional_part(base, nothing):
    base.write_text(BASE + "sampler: greedy\n")
    assert load_spec(base, overrides=[f"sampler={nothing}"]).sections.sampler is None


@pytest.mark.parametrize(
    ("override", "path", "message"),
    [
        ("name", "", "should read KEY.KEY=VALUE"),
        ("=1", "", "should read KEY.KEY=VALUE"),
        ("a..b=1", "", "should read KEY.KEY=VALUE"),
        ("model.encoder.hidden=x", "model.encoder.hidden", "should be a valid integer"),
        ("model.encoder.hiden=3", "model.encoder.hiden", "did you mean 'hidden'?"),
        ("model.encoder=lstm", "model.encoder", "key 'hidden' is missing"),
        ("model.encoder.type=lstm", "model.encoder", "key 'hidden' is missing"),
        ("model.encoder.hidden.a.b=1", "model.encoder.hidden", "is a mapping, but should be a"),
        ("model.encoder={hidden: 1, hidden: 2}", "model.encoder.hidden", "a second time"),
        ("metrics.0=bleu", "metrics", "should be a list, but is a mapping"),
        ("name=[", "", "is not YAML"),
        ("sampler=gredy", "sampler", "no sampler named 'gredy'; did you mean 'greedy'?"),
    ],
)
def test_faults_of_an_override_point_at_it(base, override, path, message):
    problem = the_problem(base, override)
    assert problem.place.file == f"--set {override}"
    assert problem.path == path
    assert message in problem.message


def test_the_faults_of_all_overrides_come_at_once(base):
    problems = draft_spec(base, overrides=["bad", "name=[", "zoo=2"]).problems
    assert {p.place.file for p in problems} >= {"--set bad", "--set name=["}


def test_an_override_of_great_depth_is_refused_quickly(base):
    deep, deeper = ("model." + "a." * depth + "a=1" for depth in (2_000, 8_000))
    assert assert_fast(lambda: draft_spec(base, overrides=[deeper]).problems)
    assert assert_fast(lambda: draft_spec(base, overrides=[deep, deep]).problems)


def test_many_keys_on_both_sides_are_mixed_quickly(base):
    base.write_text("".join(f"a{i}: 1\n" for i in range(3_000)))
    child = base.parent / "child.yaml"
    child.write_text("extends: base.yaml\n" + "".join(f"b{i}: 1\n" for i in range(3_000)))
    problems = assert_fast(lambda: draft_spec(child, overrides=["c=1"]).problems)
    assert len(problems) > 6_000


@pytest.mark.parametrize("source", ["nul\0.yaml", "a" * 5000, "", "bahdanau-2051"])
def test_a_name_that_leads_nowhere_is_a_spec_error(source):
    with pytest.raises(SpecError):
        load_spec(source)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_resolved_form_reads_back_as_the_same_spec(name):
    resolved = load_spec(name).resolve()
    for again in (
        resolved,
        json.loads(json.dumps(resolved)),
        read_text(yaml.safe_dump(resolved), "x").data,
    ):
        assert load_spec(again).resolve() == resolved
        assert load_spec(again).providers() == load_spec(name).providers()


def test_reading_a_dict_leaves_it_as_it_was(base):
    data = {"extends": str(base), "model": {"encoder": {"hidden": 3}}}
    before = json.dumps(data)
    load_spec(data, overrides=["model.encoder.hidden=4"])
    assert json.dumps(data) == before


def test_the_resolved_form_leaves_nothing_to_defaults_and_qualifies_every_name(base):
    model = load_spec(base).resolve()["model"]
    assert model["encoder"] == {
        "type": "recurrent:gru",
        "hidden": 8,
        "layers": 2,
        "bidirectional": False,
        "dropout": 0.0,
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
