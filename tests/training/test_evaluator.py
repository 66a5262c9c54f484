"""The values of evaluations during training."""

import math

import pytest
from training_kit import make_spec, read_log

import zoo


def test_the_loss_of_evaluations_of_a_run_with_reinforce_is_the_cross_entropy(files, tmp_path):
    spec = {
        **make_spec(files, steps=6, evaluate={"every": 2}),
        "extends": "bahdanau-reversal",
        "model": {"decoder": {"attention": {"align": "hard"}}},
        "objective": "reinforce",
        "metrics": ["perplexity"],
    }
    result = zoo.train(spec, output=tmp_path / "run", device="cpu")
    losses = {}
    for entry in read_log(tmp_path / "run"):
        if "validation_loss" in entry:
            losses[entry["step"]] = entry["validation_loss"]
            expected = math.log(entry["validation_perplexity"])
            assert entry["validation_loss"] == pytest.approx(expected, abs=1e-5)
    assert result.best["step"] == min(losses, key=losses.get)
