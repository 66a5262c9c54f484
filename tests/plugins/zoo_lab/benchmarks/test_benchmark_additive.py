import pytest
import torch

pytest.importorskip("zoo_fast", reason="the fast lane is not installed")

from zoo_lab.benchmarks.bahdanau import additive_benchmark
from zoo_lab.benchmarks.bahdanau.additive_benchmark import textbook
from zoo_lab.benchmarks.bahdanau.benchmark_additive import AdditiveAttentionBenchmark
from zoo_lab.benchmarks.bahdanau.benchmark_additive_cpu import AdditiveAttentionCpu

CPU = torch.device("cpu")


def prepared(cls, **sizes):
    torch.manual_seed(0)
    benchmark = cls(**(cls.test_params | sizes))
    benchmark.prepare(CPU)
    return benchmark


def test_check_finds_a_wrong_context(monkeypatch):
    benchmark = prepared(AdditiveAttentionCpu)
    benchmark.check()
    monkeypatch.setattr(additive_benchmark, "attend", lambda *inputs: 1.1 * textbook(*inputs))
    with pytest.raises(AssertionError, match=r"context differs by 1.0e-01 in torch.float32"):
        benchmark.check()


def test_gradients_equal_those_of_the_peer():
    benchmark = prepared(AdditiveAttentionBenchmark)
    (eager,) = (prepare() for name, prepare in benchmark.peers().items() if name == "eager")
    for ours, theirs in zip(benchmark.run(), eager(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_eager_is_left_out_if_it_needs_too_much_memory():
    assert "eager" in AdditiveAttentionBenchmark().peers()
    assert "eager" not in AdditiveAttentionBenchmark(length=4096).peers()


def test_bound():
    bound = prepared(AdditiveAttentionCpu, batch=1, length=2, dim=3).bound()
    assert bound.bytes == 8 * 4 * 6  # eight tensors [1, 2, 3] of float32
    assert bound.operations == 213 * 1.5 * 12
