"""Differences of two specs or models."""

import json

import pytest
import torch
from artifact_kit import REGISTRY, TIED

import zoo
from zoo_diff.comparing import compare

SPEC = """zoo: 1
name: mine
model:
  type: seq2seq
  source: {type: token, vocab: 9, dim: 4}
  encoder: {type: gru, hidden: 3}
  decoder:
    type: attentive-rnn
    hidden: 5
    attention: {scorer: SCORER, align: soft}
"""


@pytest.fixture
def specs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, scorer in (("a", "additive"), ("b", "general")):
        (tmp_path / f"{name}.yaml").write_text(SPEC.replace("SCORER", scorer))
    return tmp_path


def _saved(path, seed=0, change=None, dtype="float32", spec="a.yaml"):
    model = zoo.compose(spec, seed=seed, dtype=dtype)
    if change is not None:
        with torch.no_grad():
            change(model)
    zoo.save(model, path)
    return str(path)


def test_a_spec_equals_itself_and_the_model_composed_of_it(specs):
    found = compare("a.yaml", "a.yaml")
    assert found.equal
    assert found.tensors.same == len(zoo.compose("a.yaml").state_dict())
    assert found.tensors.same_hash == 0
    assert compare("a.yaml", _saved("m.safetensors", seed=3), seed=3).equal
    assert not compare("a.yaml", "m.safetensors", seed=4).equal


def test_settings_have_the_line_that_sets_them(specs):
    found = compare("a.yaml", "b.yaml", only=["settings"])
    rows = {each.path: each for each in found.settings}
    kind = rows["model.decoder.attention.scorer.type"]
    assert (kind.a, kind.b) == ("bahdanau:additive", "luong:general")
    assert (kind.a_place.file, kind.a_place.line) == ("a.yaml", 10)
    default = rows["model.decoder.attention.scorer.hidden"]
    assert default.a is None
    assert default.a_place is None
    assert "b" not in default.as_json()
    assert found.tensors is None
    assert found.outputs is None


def test_a_changed_weight_is_measured_and_equal_hashes_are_counted(specs):
    def change(model):
        model.encoder.stack.layers[0][0].bias_ih[2] += 0.5

    a, b = _saved("a.safetensors"), _saved("b.safetensors", change=change)
    found = compare(a, b)
    assert found.settings == []
    (row,) = found.tensors.changed
    values = zoo.load(a).state_dict()[row.name], zoo.load(b).state_dict()[row.name]
    gap = (values[0].double() - values[1].double()).abs().max()
    largest = torch.cat(values).double().abs().max()
    assert row.distance.absolute == pytest.approx(float(gap))
    assert row.distance.relative == pytest.approx(float(gap / largest))
    assert found.tensors.same == found.tensors.same_hash == len(zoo.load(a).state_dict()) - 1
    assert found.outputs.distances["logits"].absolute > 0
    assert not found.equal
    json.dumps(found.as_json(), allow_nan=False)


def test_outputs_are_those_of_both_models_on_one_example(specs):
    a, b = _saved("a.safetensors"), _saved("b.safetensors", seed=1)
    one, two = zoo.load(a), zoo.load(b)
    batch = one.example(2, 5, torch.Generator().manual_seed(0))
    with torch.no_grad():
        gap = (one(batch).logits.double() - two(batch).logits.double()).abs().max()
    found = compare(a, b, only=["outputs"]).outputs
    assert found.distances["logits"].absolute == pytest.approx(float(gap), rel=1e-4)


def test_another_dtype_is_a_difference_with_its_values(specs):
    a, b = _saved("a.safetensors"), _saved("b.safetensors", dtype="bfloat16")
    found = compare(a, b)
    assert len(found.tensors.changed) == len(zoo.load(a).state_dict())
    assert all(each.distance.relative < 0.01 for each in found.tensors.changed)
    assert found.outputs.distances["logits"].relative < 0.05


def test_values_that_are_not_finite_differ_and_are_valid_json(specs):
    def change(model):
        model.source.table.weight[3, 0] = torch.nan

    a, b = _saved("a.safetensors"), _saved("b.safetensors", change=change)
    found = compare(a, b, only=["tensors"])
    (row,) = found.as_json()["tensors"]["changed"]
    assert row["finite"] is False
    assert row["max_difference"] is None
    json.dumps(found.as_json(), allow_nan=False)
    assert compare(b, b, only=["tensors"]).equal


def test_other_parts_have_other_tensors_and_shapes(specs):
    (specs / "b.yaml").write_text((specs / "b.yaml").read_text().replace("vocab: 9", "vocab: 7"))
    found = compare("a.yaml", "b.yaml")
    assert "decoder.attention.scorers.0.v" in found.tensors.only_a
    changed = {each.name: each for each in found.tensors.changed}
    assert changed["source.table.weight"].distance is None
    assert found.outputs.distances["logits"] is None
    assert found.outputs.shapes["logits"][0][-1] == 9


@pytest.mark.parametrize(
    ("other", "reason"),
    [("gat-cora", "the models take different inputs"), ("llama-7b", "at most 4,000,000,000")],
)
def test_outputs_that_cannot_be_compared_have_a_reason(specs, other, reason):
    found = compare("a.yaml", other, as_specs=True)
    assert reason in found.outputs.reason
    assert not found.equal


def test_a_model_whose_component_is_missing_is_compared_as_stored(specs):
    zoo.save(zoo.compose(TIED, registry=REGISTRY), "tied.safetensors")
    found = compare("tied.safetensors", "tied.safetensors")
    assert found.tensors.same_hash == 2
    assert "kit-tied" in found.outputs.reason


def test_a_name_of_nothing_has_a_suggestion(specs):
    with pytest.raises(zoo.ZooError, match=r"named 'bahdanau-2051'; did you mean 'bahdanau-2015'"):
        compare("bahdanau-2051", "a.yaml")
