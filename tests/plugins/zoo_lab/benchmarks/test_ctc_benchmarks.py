"""The checks of the benchmarks fail if a computation is wrong."""

import pytest
import torch

from zoo_lab.benchmarks.ctc.benchmark_ctc_beam import CtcBeamBenchmark
from zoo_lab.benchmarks.ctc.benchmark_ctc_beam_cpu import CtcBeamCpuBenchmark
from zoo_lab.benchmarks.ctc.benchmark_ctc_loss import CtcLossBenchmark
from zoo_lab.benchmarks.ctc.benchmark_ctc_loss_cpu import CtcLossCpuBenchmark

CPU = torch.device("cpu")


def prepared(benchmark_class):
    benchmark = benchmark_class(**benchmark_class.test_params)
    benchmark.prepare(CPU)
    return benchmark


@pytest.mark.parametrize("benchmark_class", [CtcLossBenchmark, CtcLossCpuBenchmark])
def test_the_gradient_equals_that_of_torch(benchmark_class):
    benchmark = prepared(benchmark_class)
    benchmark.check()
    peers = benchmark.peers()
    torch.testing.assert_close(benchmark.run(), peers["torch"]()(), atol=1e-6, rtol=1e-4)


def test_the_check_of_the_loss_fails_for_a_wrong_gradient(monkeypatch):
    benchmark = prepared(CtcLossBenchmark)
    correct = benchmark.objective.log_likelihood

    def wrong(logits, *inputs):
        return correct(logits, *inputs) + 0.01 * (logits - logits.detach()).sum()

    monkeypatch.setattr(benchmark.objective, "log_likelihood", wrong)
    with pytest.raises(AssertionError, match=r"the error in torch.float32"):
        benchmark.check()


@pytest.mark.parametrize("benchmark_class", [CtcBeamBenchmark, CtcBeamCpuBenchmark])
def test_the_beam_equals_fast_ctc_decode(benchmark_class):
    pytest.importorskip("fast_ctc_decode")
    benchmark = prepared(benchmark_class)
    benchmark.check()
    expected = [
        [ord(c) - 0x100 for c in text] for text, _ in benchmark.peers()["fast-ctc-decode"]()()
    ]
    tokens = benchmark.run().tokens[:, 0].tolist()
    assert [[k for k in row if k] for row in tokens] == expected
