"""Benchmarks in a process of their own."""

import pytest

from zoo_lab.bench import process
from zoo_lab.bench.process import BenchOptions, TimeLimits, run_in_process
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


@pytest.mark.slow
def test_rows_of_a_sweep_are_reported_while_it_runs(monkeypatch):
    monkeypatch.setattr(process, "_WATCH_SECONDS", 0.01)
    seen = []
    (case,) = select_cases(["top-k-filter"], "cpu", SMALL)
    options = BenchOptions("cpu", 2, peers=False, sweep=True)
    run_in_process(case, options, max_seconds=300, progress=lambda rows: seen.append(len(rows)))
    assert seen == sorted(seen)
    assert seen[0] < 4


def test_a_process_that_takes_too_long_is_ended():
    (result,) = _run(max_seconds=0.05)
    assert result.problem == "stopped after 0.05 s"
    assert (result.benchmark, result.ours) == ("top-k-filter", None)


def test_nothing_is_measured_after_the_time_of_the_run():
    (result,) = _run(max_seconds=0)
    assert result.problem == "not measured: the time of the run is over"


def test_the_total_limits_the_time_of_each_benchmark():
    assert TimeLimits(0).next_seconds() is None
    assert TimeLimits(30).next_seconds() == 30
    assert TimeLimits(30, 600).next_seconds() == 30
    assert 0 < TimeLimits(0, 600).next_seconds() <= 600
    assert TimeLimits(30, 1e-9).next_seconds() == 0
