"""Models that change at an evaluation, with the linear start of memory networks."""

import itertools

import pytest
from training_kit import make_story_spec, read_log

import zoo


def _evaluations(folder):
    return {
        entry["step"]: entry["validation_loss"]
        for entry in read_log(folder)
        if "validation_loss" in entry
    }


def _loss(path, spec):
    return zoo.evaluate(zoo.load(path), spec["train"]["validation"]).values["loss"]


@pytest.mark.parametrize("linear_start", [3, True])
def test_a_checkpoint_has_the_model_that_was_evaluated(tmp_path, linear_start):
    train = {"evaluate": {"every": 1}, "checkpoints": {"last": 9}}
    spec = make_story_spec(tmp_path, linear_start=linear_start, **train)
    spec["train"]["optimiser"]["lr"] = 0.2  # one of the evaluations is not the best
    zoo.train(spec, output=tmp_path / "run", device="cpu")
    losses = _evaluations(tmp_path / "run")
    linear = []
    for step, loss in losses.items():
        path = tmp_path / f"run/checkpoints/step-{step:08d}/model.safetensors"
        assert _loss(path, spec) == pytest.approx(loss, abs=1e-5)
        linear.append(zoo.load(path).is_linear)
    assert linear == sorted(linear, reverse=True)
    assert 0 < sum(linear) < len(linear)


def test_the_best_model_is_of_the_last_phase(tmp_path):
    spec = make_story_spec(tmp_path, linear_start=2, evaluate={"every": 1}, schedule="plateau")
    result = zoo.train(spec, output=tmp_path / "run", device="cpu")
    losses = _evaluations(tmp_path / "run")
    assert result.best["step"] == min(range(3, 7), key=losses.get)
    assert not zoo.load(result.path).is_linear
    assert _loss(result.path, spec) == pytest.approx(result.best["value"], abs=1e-5)


def test_patience_counts_from_the_start_of_a_phase(tmp_path):
    evaluate = {"every": 1, "patience": 1}
    spec = make_story_spec(tmp_path, linear_start=True, evaluate=evaluate, steps=40)
    spec["train"]["optimiser"]["lr"] = 0.2
    result = zoo.train(spec, output=tmp_path / "run", device="cpu")
    losses = list(_evaluations(tmp_path / "run").values())
    increases = [i for i, (a, b) in enumerate(itertools.pairwise(losses)) if b >= a]
    assert len(increases) >= 2  # the first ends the linear start, the second the training
    assert not zoo.load(result.path).is_linear
