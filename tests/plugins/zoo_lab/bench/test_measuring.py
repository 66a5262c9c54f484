"""Number of calls and memory of a measurement."""

import torch
from benchmark_kit import CPU

from zoo_lab.bench import measuring
from zoo_lab.bench.measuring import StepTime, measure


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


def test_the_time_of_a_step_is_without_the_start(monkeypatch):
    now = [0.0]

    def generate(steps):
        now[0] += 5.0 + 2.0 * steps
        return torch.ones(100 * steps) + 1

    monkeypatch.setattr(measuring.time, "perf_counter", lambda: now[0])
    function = StepTime(lambda: generate(8), lambda: generate(4), 4)
    found = measure(function, CPU, repeats=3, cpu_memory=True)
    assert (found.seconds, found.spread, found.repeats) == (2.0, (2.0, 2.0), 3)
    assert found.memory >= 2 * 800 * 4  # that of the longer call
    assert len(function()) == 800
