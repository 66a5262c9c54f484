"""Benchmarks in a process of their own."""

import pytest

from zoo_lab.bench.process import BenchOptions, run_in_process
from zoo_lab.bench.selection import select_cases

SMALL = ["vocab=40", "k=5"]


def _run(max_seconds, sweep=False):
    (case,) = select_cases(["top-k-filter"], "cpu", SMALL)
    return run_in_process(
        case, BenchOptions("cpu", 2, peers=False, sweep=sweep), max_seconds=max_seconds
    )


@pytest.mark.slow
def test_the_result_of_the_process_is_returned():
    (result,) = _run(max_seconds=300)
    assert (result.problem, result.check) == (None, "passed")
    assert result.params == {"batch": 64, "vocab": 40, "k": 5, "std": 3.0}
    assert result.changed == {"vocab": 40, "k": 5}
    assert result.ours.repeats == 2
    assert result.peers == []


@pytest.mark.slow
def test_a_sweep_has_several_results():
    results = _run(max_seconds=300, sweep=True)
    assert [result.changed["batch"] for result in results] == [1, 8, 64, 512]
    assert [result.problem for result in results] == [None] * 4


def test_a_process_that_takes_too_long_is_ended():
    (result,) = _run(max_seconds=0.05)
    assert result.problem == "stopped after 0.05 s"
    assert (result.benchmark, result.ours) == ("top-k-filter", None)
