"""The check of the benchmark detects other weights and other operations."""

import pytest
import torch

from zoo_lab.benchmarks.transformer.benchmark_composed import ComposedTransformer


@pytest.fixture
def benchmark():
    torch.manual_seed(0)
    built = ComposedTransformer(**{**ComposedTransformer.test_params, "compile": False})
    built.prepare(torch.device("cpu"))
    return built


def test_another_weight_fails_the_check(benchmark):
    benchmark.check()
    with torch.no_grad():
        benchmark.written.decoder.blocks[0].cross.value.weight.mul_(2)
    with pytest.raises(AssertionError, match="differs"):
        benchmark.check()


def test_padding_is_masked_on_both_sides(benchmark):
    benchmark.source[0, -1] = 0
    benchmark.check()
    loss = benchmark.written_loss
    complete = benchmark.source.where(benchmark.source != 0, 1)
    benchmark.written.eval()
    masked = loss()
    benchmark.source = complete
    assert loss() != masked
