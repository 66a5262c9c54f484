"""`zoo.objective` and `zoo.metrics` build these sections from any form of a spec."""

import json

import pytest
import torch

import zoo
from zoo_metrics.accuracy import Accuracy
from zoo_objectives.cross_entropy import CrossEntropy

SPEC = {
    "zoo": 1,
    "name": "small",
    "model": {
        "type": "language-model",
        "embedding": {"type": "token", "vocab": 9, "dim": 4},
        "decoder": {"type": "plain-rnn", "hidden": 4, "init": "zeros"},
    },
    "objective": {"type": "cross-entropy", "smoothing": 0.25},
    "metrics": ["sequence-accuracy", "accuracy"],
}
PARTIAL = {key: value for key, value in SPEC.items() if key not in ("objective", "metrics")}


@pytest.fixture(params=["mapping", "file", "Spec", "composed", "loaded"])
def source(request, tmp_path):
    if request.param == "mapping":
        return SPEC
    if request.param == "Spec":
        return zoo.load_spec(SPEC)
    if request.param == "file":
        path = tmp_path / "small.yaml"
        path.write_text(json.dumps(SPEC))
        return path
    model = zoo.compose(SPEC)
    if request.param == "composed":
        return model
    return zoo.load(zoo.save(model, tmp_path / "model.safetensors"))


def test_objective_has_the_parameters_of_the_spec(source):
    objective = zoo.objective(source)
    assert isinstance(objective, CrossEntropy)
    assert objective.smoothing == 0.25


def test_metrics_keep_the_order_of_the_spec(source):
    metrics = zoo.metrics(source)
    assert [metric.name for metric in metrics] == ["sequence-accuracy", "accuracy"]
    assert isinstance(metrics[1], Accuracy)


def test_a_shipped_spec_is_found_by_name():
    model = zoo.compose("gpt2-tiny")
    loss = zoo.objective("gpt2-tiny")(model(model.example(2, 3, torch.Generator().manual_seed(0))))
    assert loss.isfinite()


@pytest.mark.parametrize("section", ["objective", "metrics"])
def test_a_spec_without_the_section_raises(section):
    build = getattr(zoo, section)
    for source in (PARTIAL, zoo.compose(PARTIAL)):
        with pytest.raises(zoo.ZooError, match=f"'small'.*{section}"):
            build(source)


@pytest.mark.parametrize("section", ["objective", "metrics"])
def test_a_model_without_a_spec_raises(section):
    model = zoo.compose(SPEC)
    model.spec = None
    with pytest.raises(zoo.ZooError, match=f"LanguageModel.*spec.*{section}"):
        getattr(zoo, section)(model)
