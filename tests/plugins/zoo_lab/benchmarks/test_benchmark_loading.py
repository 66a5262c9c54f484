"""The check of the benchmark compares the loaded weights."""

import pytest
import torch

from zoo_lab.benchmarks.huggingface.benchmark_loading import Loading


def test_another_weight_fails_the_check():
    benchmark = Loading(**Loading.test_params)
    benchmark.prepare(torch.device("cpu"))
    benchmark.check()
    next(iter(benchmark.weights.values()))[0] += 1
    with pytest.raises(AssertionError, match="differs from the saved weight"):
        benchmark.check()
    folder = benchmark.folder
    assert folder.exists()
    del benchmark
    assert not folder.exists()
