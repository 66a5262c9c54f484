"""Specs that extend models with weights."""

import pytest

import zoo


@pytest.fixture
def model(tmp_path):
    spec = zoo.load_spec("gpt2-tiny", overrides=["model.embedding.vocab=33"]).resolve()
    return zoo.save(zoo.compose(spec), tmp_path / "base.safetensors")


def _error(source):
    with pytest.raises(zoo.SpecError) as caught:
        zoo.load_spec(source)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("name", ["base.safetensors", "./base.safetensors"])
def test_the_spec_of_a_model_next_to_the_file_is_extended(model, tmp_path, name):
    path = tmp_path / "spec.yaml"
    path.write_text(f"extends: {name}\nname: mine\nmodel: {{decoder: {{dropout: 0.5}}}}\n")
    resolved = zoo.load_spec(path).resolve()
    assert resolved["model"]["embedding"]["vocab"] == 33
    assert resolved["model"]["decoder"]["dropout"] == 0.5
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "child.yaml").write_text("extends: ../spec.yaml\nname: child\n")
    assert zoo.load_spec(folder / "child.yaml").resolve()["model"] == resolved["model"]


def test_the_weights_are_the_start_of_a_training_unless_it_names_others(model, tmp_path):
    train = {"data": {"type": "plain-text", "files": "x.txt"}, "optimiser": "adamw", "steps": 2}
    spec = {"extends": str(model), "name": "mine", "train": train}
    start = zoo.load_spec(spec).sections.train.build().start
    assert (start.weights, start.parts, start.sha256) == (str(model), None, None)
    other = {**spec, "train": {**train, "start": {"weights": "other", "parts": {"a": "b"}}}}
    start = zoo.load_spec(other).sections.train.build().start
    assert (start.weights, start.parts) == ("other", {"a": "b"})
    changed = zoo.load_spec(other, overrides=["train.start=third"]).sections.train.build().start
    assert (changed.weights, changed.parts) == ("third", None)
    short = {**spec, "train": {**train, "start": "other"}}
    pinned = zoo.load_spec(short, overrides=[f"train.start.sha256={'a' * 64}"])
    assert pinned.sections.train.build().start.sha256 == "a" * 64


def test_errors_in_the_changes_of_a_model_have_the_line_of_the_spec(model, tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("extends: base.safetensors\nname: mine\nmodel: {decoder: {dropot: 0.5}}\n")
    problem = _error(path)
    assert (problem.path, problem.place.line) == ("model.decoder.dropot", 3)


def test_a_damaged_model_is_reported_at_the_key_extends(model, tmp_path):
    model.write_bytes(model.read_bytes()[:500])
    path = tmp_path / "spec.yaml"
    path.write_text("name: mine\nextends: base.safetensors\n")
    problem = _error(path)
    assert (problem.path, problem.place.line) == ("extends", 2)


@pytest.mark.parametrize("name", ["transformer-tny", "missing.yaml", "folder/missing.yaml"])
def test_an_unknown_name_is_not_looked_up_on_the_hub(tmp_path, name):
    path = tmp_path / "spec.yaml"
    path.write_text(f"extends: {name}\n")
    assert _error(path).path == "extends"


def test_a_model_of_another_type_has_the_parts_that_both_have(tmp_path):
    zoo.save(zoo.compose("bert-tiny"), tmp_path / "bert.safetensors")
    path = tmp_path / "spec.yaml"
    path.write_text(
        "extends: bert.safetensors\nname: mine\n"
        "model: {type: classifier, classes: 2, encoder: {dropout: 0.5}}\n"
    )
    base, ours = zoo.load_spec("bert-tiny").resolve(), zoo.load_spec(path).resolve()
    assert ours["model"]["source"] == base["model"]["source"]
    assert ours["model"]["encoder"] == {**base["model"]["encoder"], "dropout": 0.5}
    assert (ours["model"]["classes"], ours["model"]["pooling"]) == (2, "first")
    assert ours["metrics"] == []
    path.write_text("extends: bert.safetensors\nname: mine\n")
    overrides = ["model.type=classifier", "model.classes=2", "model.encoder.dropout=0.5"]
    assert zoo.load_spec(path, overrides=overrides).resolve() == ours


def test_the_type_of_the_base_can_be_repeated(model, tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(
        "extends: base.safetensors\nname: mine\n"
        "model: {type: language-model, decoder: {dropout: 0.5}}\n"
    )
    resolved = zoo.load_spec(path).resolve()
    assert resolved["model"]["embedding"]["vocab"] == 33
    assert resolved["model"]["decoder"]["dropout"] == 0.5


def test_a_missing_parameter_of_another_type_has_the_line_of_the_spec(tmp_path):
    zoo.save(zoo.compose("bert-tiny"), tmp_path / "bert.safetensors")
    path = tmp_path / "spec.yaml"
    path.write_text("extends: bert.safetensors\nname: mine\nmodel: {type: classifier}\n")
    assert str(_error(path)) == f"{path}:3:8: model: key 'classes' is missing"
