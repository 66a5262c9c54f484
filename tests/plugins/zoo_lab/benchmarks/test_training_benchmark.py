"""Benchmarks of training steps: the check compares gradients, losses and captured steps."""

import pytest
import torch
from benchmark_kit import CPU

import zoo_lab.benchmarks.training_benchmark as module
from zoo_lab.benchmarks.gat.benchmark_gat_batch import GatBatch
from zoo_lab.benchmarks.recurrent.benchmark_recurrent_training import GOALS, RecurrentTraining


def _prepared(cls, **params):
    benchmark = cls(**{**cls.test_params, **params})
    torch.manual_seed(0)
    benchmark.prepare(CPU)
    return benchmark


def test_other_gradients_fail_the_check(monkeypatch):
    benchmark = _prepared(GatBatch)
    gradients = GatBatch._gradients

    def wrong(self, model, batch, *, exact=False, enabled=False):
        return gradients(self, model, batch, exact=exact) * (1.1 if enabled else 1.0)

    monkeypatch.setattr(GatBatch, "_gradients", wrong)
    with pytest.raises(AssertionError, match="gradients differ by"):
        benchmark.check()


def test_other_losses_fail_the_check(monkeypatch):
    benchmark = _prepared(GatBatch)
    losses = GatBatch._losses

    def wrong(self, model, batch, *, enabled):
        return [
            1.1 * loss if enabled else loss for loss in losses(self, model, batch, enabled=enabled)
        ]

    monkeypatch.setattr(GatBatch, "_losses", wrong)
    with pytest.raises(AssertionError, match="losses"):
        benchmark.check()


@pytest.mark.parametrize(
    "spec",
    ["elmo-tiny", "draw-tiny", "dnc-tiny", "show-attend-tell-soft-tiny", "video-tiny"],
)
def test_each_recurrent_model_passes_the_check(spec):
    benchmark = _prepared(RecurrentTraining, spec=spec)
    benchmark.check()
    benchmark.run()
    bound = benchmark.bound()
    assert bound.operations > 0
    assert bound.bytes > 28 * sum(p.numel() for p in benchmark.model.parameters())


def test_goals_hold_for_the_default_batch():
    assert RecurrentTraining(spec="dnc-2016").goal().seconds == GOALS["dnc-2016"]
    assert RecurrentTraining(spec="dnc-2016", batch=16).goal().seconds is None


def test_dropout_is_off_in_the_check_only():
    benchmark = _prepared(GatBatch, spec="gat-cora")
    rates = {m.p for m in benchmark.model.modules() if isinstance(m, torch.nn.Dropout)}
    assert 0.6 in rates
    copied = module.without_dropout(benchmark.model)
    assert {m.p for m in copied.modules() if isinstance(m, torch.nn.Dropout)} == {0.0}
    assert 0.6 in {m.p for m in benchmark.model.modules() if isinstance(m, torch.nn.Dropout)}


def test_the_graphs_of_the_peer_are_those_of_the_batch():
    pytest.importorskip("torch_geometric")
    benchmark = _prepared(GatBatch)
    (prepare,) = benchmark.peers().values()
    prepare()()
