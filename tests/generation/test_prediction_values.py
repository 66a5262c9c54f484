"""Regression and several labels: from a table to predictions."""

import json

import pytest
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

MODEL = {"source": {"type": "token", "vocab": 9, "dim": 8}, "pooling": "summary"}
TRAIN = {"optimiser": {"type": "adamw", "lr": 0.05}, "batch": {"items": 3}, "epochs": 8}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.json").write_text(EXAMPLE_TOKENIZER)
    (tmp_path / "a.csv").write_text("x,score,tags\nthe,1,p q\ncat,-1,q\nmat,3,p\n")
    return tmp_path


def spec(kind, column, content, objective, metrics, **more):
    fields = {"source": {"column": "x"}, "target": {"column": column, "content": content}}
    model = {"type": kind, **MODEL, "encoder": {"type": "gru", "hidden": 8}, **more}
    data = {"type": "csv", "file": "a.csv", "fields": fields}
    return {
        "zoo": 1,
        "name": "small",
        "model": model,
        "objective": objective,
        "metrics": metrics,
        "preprocessing": {"source": {"type": "text", "tokenizer": "words.json"}},
        "train": {"data": data, "test": data, **TRAIN},
    }


def run(*arguments):
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def test_numbers_are_predicted_and_evaluated(folder):
    metrics = ["mse", "mae", "pearson", "spearman"]
    made = spec("regressor", "score", "number", "mean-squared-error", metrics)
    zoo.train(made, output="run", overrides=["train.epochs=60"])
    result = zoo.evaluate("run")
    assert result.values["mse"] == pytest.approx(result.values["loss"], abs=1e-6)
    assert result.values["mse"] < 0.5
    assert result.values["spearman"] == 1.0
    found = zoo.predict(zoo.load("run"), ["the", "cat", "mat"])
    assert [round(each.values[0]) for each in found] == [1, -1, 3]
    assert float(run("predict", "run", "mat")) == pytest.approx(found[2].values[0], abs=1e-3)
    assert "classes" not in run("eval", "run")


def test_several_labels_are_predicted_with_their_names(folder):
    more = {"classes": 2, "multi_label": True}
    made = spec("classifier", "tags", "labels", "binary-cross-entropy", ["micro-f1"], **more)
    zoo.train(made, output="run", overrides=["train.epochs=60"])
    found = zoo.predict(zoo.load("run"), ["the", "cat", "mat"], top_k=1)
    assert [sorted(each.labels) for each in found] == [["p", "q"], ["q"], ["p"]]
    assert len(found[0].top) == 2
    assert found[1].top[0][1] > 0.5
    assert run("predict", "run", "cat").startswith("q 0.")
    printed = json.loads(run("eval", "run", "--json"))
    assert printed["details"]["classes"]["p"]["targets"] == 2
    assert printed["micro-f1"] == 1.0
    assert "precision" in run("eval", "run")
