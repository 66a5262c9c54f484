"""The values of evaluations during training."""

import json
import math

import pytest
from torch import Tensor
from training_kit import Messages, make_spec, read_log

import zoo
from zoo import Outputs
from zoo.registry.component_registry import default_registry
from zoo_objectives.cross_entropy import CrossEntropy


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


class NanInEvaluation(CrossEntropy):
    """Cross-entropy that is NaN in some evaluations, counted from 1."""

    name = "nan-in-evaluation"

    def __init__(self, *, bad: list[int]) -> None:
        super().__init__()
        self.bad = bad
        self.calls = 0

    def forward(self, outputs: Outputs) -> Tensor:
        loss = super().forward(outputs)
        self.calls += not self.training
        return loss * float("nan") if not self.training and self.calls in self.bad else loss


def _train_with_nan(files, output, bad, **evaluate):
    """Train for 4 evaluations of one batch each; some losses are NaN."""
    settings = {"steps": 8, "batch": {"items": 10}, "evaluate": {"every": 2, **evaluate}}
    spec = {
        **make_spec(files, **settings, schedule={"type": "plateau", "patience": 0, "factor": 0.5}),
        "objective": {"type": NanInEvaluation.name, "bad": bad},
        "metrics": ["accuracy"],
    }
    registry = default_registry().with_components([NanInEvaluation], plugin="tests")
    messages = Messages()
    result = zoo.train(spec, output=output, device="cpu", callbacks=[messages], registry=registry)
    return result, messages.texts


def test_a_result_that_is_not_finite_is_reported_and_never_the_best(files, tmp_path):
    result, messages = _train_with_nan(files, tmp_path / "run", [1, 3])
    assert result.best["step"] == 8
    assert messages == [
        f"step {step}: the validation result 'loss' is nan; this evaluation is not the best, and "
        "the training continues"
        for step in (2, 6)
    ]
    lines = (tmp_path / "run/log.jsonl").read_text().splitlines()
    entries = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    evaluations = [entry for entry in entries if "validation_accuracy" in entry]
    assert [entry.get("not_finite") for entry in evaluations] == [{"loss": "nan"}, None] * 2
    assert [entry["lr"] for entry in entries if "lr" in entry][-1] == 0.0025  # two reductions


def test_patience_counts_results_that_are_not_finite(files, tmp_path):
    result, _ = _train_with_nan(files, tmp_path / "run", [2, 3, 4], patience=2)
    assert (result.step, result.best["step"]) == (6, 2)


def test_a_run_without_a_finite_result_saves_the_last_model(files, tmp_path):
    result, messages = _train_with_nan(files, tmp_path / "run", list(range(9)))
    assert result.best is None
    assert result.values.keys() == {"accuracy"}
    assert zoo.artifact.read_header(result.path).provenance["train"]["step"] == 8
    assert len(messages) == 4


def test_a_result_that_is_not_monitored_may_be_not_finite(files, tmp_path):
    result, messages = _train_with_nan(files, tmp_path / "run", [1, 2, 3, 4], monitor="accuracy")
    assert result.best["name"] == "accuracy"
    assert "'loss' is nan; it is left out, and the training continues" in messages[0]
