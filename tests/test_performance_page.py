"""docs/performance.md has the figures of lab/benchmarks/results."""

import re
import runpy
from pathlib import Path

import pytest
from benchmark_kit import measurement, result

from zoo_lab.bench.cliffs import find_cliffs
from zoo_lab.bench.result import BenchmarkReport, Goal, PeerResult, Targets

ROOT = Path(__file__).parents[1]
PAGE = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "page.py"))


def _report(command, *results):
    return BenchmarkReport(
        command=command,
        commit="0123456789abcdef",
        date="2026-01-02T03:04:05+00:00",
        hardware={"device": "GPU", "processor": "CPU", "cores": 2, "threads": 1},
        versions={"torch": "2.11"},
        results=list(results),
    )


def test_the_page_is_written_from_the_results():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert page == PAGE["render"](PAGE["read_reports"](), PAGE["read_limits"]())


def test_each_missed_target_is_explained():
    sections = set(re.findall("^### `(.+)`$", PAGE["read_limits"](), re.MULTILINE))
    assert sections == PAGE["not_met"](PAGE["read_reports"]())


def test_the_comparison_has_the_best_peer_and_all_targets():
    measured = result(
        measurement(2e-3, 10**6),
        peers={"torch": measurement(8e-3, 10**6), "compiled": measurement(4e-3, 2 * 10**6)},
        targets=Targets(time=3.0, memory=0.6, peers={"torch": 4.0}),
        bound=1e-3,
        device="cuda",
    )
    measured.peers.append(PeerResult(name="other", problem="not installed: no module"))
    failed = result(None, benchmark="second", check="AssertionError: not close", problem="x")
    lines = PAGE["render"]([_report("zoo bench", measured, failed)]).splitlines()
    assert (
        "| `tiny` | compiled | 4 ms | 2 ms | 2 x | 3 x | 2.0 MB | 1.0 MB | 0.5 x | 0.6 x | 1 ms "
        "| not met: time |"
    ) in lines
    assert "| `tiny` | torch | 8 ms | 8 ms to 8 ms | 1.0 MB |  | 4 x | 4 x |  |" in lines
    assert "| `tiny` | other |  |  |  |  |  |  | not installed: no module |" in lines
    assert "| `second` | AssertionError: not close |" in lines
    assert "`zoo bench`, 2026-01-02, commit 0123456789ab; torch 2.11." in lines


def test_growth_is_relative_to_the_value_before():
    first = result(measurement(1e-3, 100), changed={"length": 256})
    second = result(measurement(4e-3, 200), changed={"length": 512})
    other = result(measurement(9e-3, 100), changed={"batch": 1})
    report = _report("zoo bench --sweep", first, second, other)
    lines = PAGE["render"]([report]).splitlines()
    assert "| `tiny` | length=512 | 4 ms | 4 x | 200 B | 2 x |  |  |  |  |  |  |  |" in lines
    assert "| `tiny` | batch=1 | 9 ms |  | 100 B |  |  |  |  |  |  |  |  |" in lines


def test_a_sweep_has_bound_goal_and_the_memory_of_the_peer():
    row = result(
        measurement(2e-3, 100),
        changed={"batch": 8},
        peers={"static": measurement(4e-3, 300)},
        bound=1e-3,
        goal=Goal(seconds=1.5e-3, ratio=1.5),
    )
    lines = PAGE["render"]([_report("zoo bench --sweep", row)]).splitlines()
    goal = "at most 1.5 ms, at least 1.5 x"
    expected = f"| 2 ms |  | 100 B |  | static | 4 ms | 2 x | 300 B | 1 ms | {goal} | no |"
    assert f"| `tiny` | batch=8 {expected}" in lines


def test_a_missed_goal_of_a_sweep_has_to_be_explained():
    met = result(measurement(1e-3), changed={"batch": 8}, goal=Goal(seconds=2e-3))
    missed = met.model_copy(update={"benchmark": "other", "goal": Goal(seconds=5e-4)})
    assert PAGE["not_met"]([_report("zoo bench --sweep", met, missed)]) == {"other"}


@pytest.mark.parametrize("report", PAGE["read_reports"](), ids=lambda report: report.command)
def test_no_step_of_a_committed_sweep_is_a_cliff(report):
    assert list(find_cliffs(report.results)) == []
