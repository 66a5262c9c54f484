"""The checks of the benchmarks of samplers detect other distributions."""

import pytest
import torch

from zoo_lab.benchmarks.sampling.benchmark_top_k import TopKBenchmark
from zoo_lab.benchmarks.sampling.benchmark_top_p import TopPBenchmark
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP


@pytest.mark.parametrize(
    ("benchmark", "other"),
    [
        (TopKBenchmark(batch=2, vocab=40, k=5), TopK(k=6)),
        (TopPBenchmark(batch=2, vocab=40, p=0.5), TopP(p=0.8)),
    ],
)
def test_another_sampler_fails_the_check(benchmark, other):
    torch.manual_seed(0)
    benchmark.prepare(torch.device("cpu"))
    benchmark.check()
    benchmark.measured = other
    with pytest.raises(AssertionError, match="total variation distance"):
        benchmark.check()
