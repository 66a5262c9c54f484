"""Class weights: fitted before training, saved with the model, equal when a run is resumed."""

import pytest

import zoo

SPEC = {
    "zoo": 1,
    "name": "weights",
    "model": {
        "type": "classifier",
        "source": {"type": "token", "vocab": 9, "dim": 4},
        "encoder": {"type": "gru", "hidden": 3},
        "classes": 2,
        "pooling": "summary",
    },
    "objective": {"type": "cross-entropy", "class_weights": "balanced"},
    "metrics": ["macro-f1"],
    "preprocessing": {"source": {"type": "text", "tokenizer": "words.json"}, "target": "label"},
    "train": {
        "data": {
            "type": "csv",
            "file": "a.csv",
            "fields": {"source": {"column": "x"}, "target": {"column": "y", "content": "label"}},
        },
        "optimiser": {"type": "adamw", "lr": 0.01},
        "batch": {"items": 2},
        "steps": 2,
    },
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.json").write_text(EXAMPLE_TOKENIZER)
    (tmp_path / "a.csv").write_text("x,y\nthe cat,bad\na cat,bad\na mat,bad\nsat,good\n")
    return tmp_path


def test_balanced_weights_are_saved_with_the_model_and_used_by_evaluations(folder):
    zoo.train(SPEC, output="run")
    model = zoo.load("run")
    assert model.spec["objective"]["class_weights"] == [4 / 6, 2.0]
    data = SPEC["train"]["data"]
    result = zoo.evaluate("run", data)
    objective, losses = zoo.objective(model), {}
    assert objective.class_weights == [4 / 6, 2.0]
    for name in ("bad", "good"):
        (folder / "one.csv").write_text(
            "".join(
                line
                for line in (folder / "a.csv").read_text().splitlines(keepends=True)
                if line.endswith((f",{name}\n", ",y\n"))
            )
        )
        losses[name] = zoo.evaluate("run", {**data, "file": "one.csv"}).values["loss"]
    # Each class has half of the weight.
    assert result.values["loss"] == pytest.approx((losses["bad"] + losses["good"]) / 2, abs=1e-6)
    assert sum(row["targets"] for row in result.details["classes"].values()) == 4


def test_a_run_with_fitted_weights_is_resumed(folder):
    zoo.train(SPEC, output="whole", overrides=["train.steps=3"])
    zoo.train(SPEC, output="run", overrides=["train.steps=2"])
    zoo.train(SPEC, output="run", overrides=["train.steps=3"], resume=True)
    first, second = (zoo.load(name).state_dict() for name in ("whole", "run"))
    assert all(first[name].equal(second[name]) for name in first)


def test_an_unknown_class_is_named(folder):
    spec = {**SPEC, "objective": {"type": "cross-entropy", "class_weights": {"god": 2.0}}}
    with pytest.raises(zoo.ZooError, match="class_weights names the class 'god'"):
        zoo.train(spec, output="run")


def test_models_without_classes_are_named(folder):
    spec = {**SPEC, "model": {**SPEC["model"], "type": "regressor", "classes": None}}
    del spec["model"]["classes"]
    with pytest.raises(zoo.SpecError, match="needs logits with class targets"):
        zoo.check(spec)
