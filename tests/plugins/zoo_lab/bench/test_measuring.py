"""Number of calls and memory of a measurement."""

import torch
from benchmark_kit import CPU

from zoo_lab.bench.measuring import measure


def test_the_function_is_called_after_a_warm_up():
    calls = []
    found = measure(lambda: calls.append(1), CPU, repeats=7, cpu_memory=False)
    assert found.repeats == 7
    assert len(calls) > 7
    assert 0 < found.spread[0] <= found.seconds <= found.spread[1]
    assert found.memory is None


def test_memory_on_the_cpu_is_the_peak_of_the_tensors_of_a_call():
    x = torch.randn(1000)

    def function():
        first = x + 1
        del first
        second = x + 2
        return second * 2

    found = measure(function, CPU, repeats=1, cpu_memory=True)
    assert 2 * x.nbytes <= found.memory <= 2 * x.nbytes + 64


def test_memory_of_a_function_without_tensors_is_not_known():
    assert measure(lambda: [0] * 1000, CPU, repeats=1, cpu_memory=True).memory is None
