"""Writes docs/performance.md from the results of `python -m lab.benchmarks`.

    python lab/benchmarks/page.py

Every figure in its tables is from the JSON files in lab/benchmarks/results. What limits the
benchmarks whose targets are not met is in lab/benchmarks/limits.md, one section for each.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from zoo_lab.bench.bench_table import (
    COMPARISON,
    GROWTH,
    PEERS,
    comparison_rows,
    growth_rows,
    peer_rows,
    problem_rows,
)
from zoo_lab.bench.result import BenchmarkReport

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "benchmarks" / "results"
LIMITS = ROOT / "lab" / "benchmarks" / "limits.md"
PAGE = ROOT / "docs" / "performance.md"

INTRODUCTION = """# Performance

This page is written by `python lab/benchmarks/page.py` from the files in `lab/benchmarks/results`,
which `python -m lab.benchmarks` writes. `zoo bench NAME` measures one benchmark; `zoo bench --list`
lists them.

- A benchmark is measured only if its results agree with the reference path, on new random inputs.
- Times are medians of calls after a warm-up, on a GPU between two events.
- Each peer runs as fast as it can: compiled, in CUDA graphs, with static caches. The best peer is
  the one with the shortest time. The ratio is its time divided by ours, so above 1 the zoo is
  faster.
- Memory is the peak of torch's allocator above what was allocated before the calls: inputs and
  weights do not count, workspaces of cuBLAS and buffers of CUDA graphs do. On the CPU it is
  measured only for benchmarks with a target.
- The bound is the time of the least bytes over 4.2 TB/s, or of the least operations over 789
  TFLOP/s, whichever is longer. Both rates were measured on an H200. It is not known for the CPU.
- Growth tables have each point of a sweep with its goal. While the bound is flat, no step may take
  more than 1.5 times as long as that of half the batch; a test checks this.
"""


def read_reports(folder: Path = RESULTS) -> list[BenchmarkReport]:
    """Return the reports of a folder, those of GPUs and those with many results first."""
    reports = [
        BenchmarkReport.model_validate_json(file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("*.json"))
    ]
    return sorted(reports, key=_place)


def _place(report: BenchmarkReport) -> tuple[bool, bool, int]:
    words = report.command.split()
    return "cuda" not in words, "--sweep" in words, -len(report.results)


def render(reports: Sequence[BenchmarkReport], limits: str = "") -> str:
    """Return the page; `limits` is the text about the targets that are not met."""
    lines = [INTRODUCTION]
    for report in reports:
        lines += [*_section(report), ""]
    lines.append(limits)
    return "\n".join(lines).rstrip("\n") + "\n"


def read_limits() -> str:
    """Return what limits the benchmarks whose targets are not met."""
    return LIMITS.read_text(encoding="utf-8")


def not_met(reports: Iterable[BenchmarkReport]) -> set[str]:
    """Return the benchmarks that were not measured, or miss a target or the goal of a sweep."""
    results = [result for report in reports for result in report.results]
    missed = (r for r in results if not all(r.met.values()) or (r.ours is None and not r.changed))
    return {result.benchmark for result in missed}


def _section(report: BenchmarkReport) -> Iterator[str]:
    hardware = report.hardware
    growth = "--sweep" in report.command.split()
    yield f"## {hardware['device']}{': growth' if growth else ''}"
    yield ""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    threads = f"{hardware['threads']} of {hardware['cores']} cores, " if _is_cpu(report) else ""
    changed = "+" if (report.commit or "").endswith("+") else ""
    commit = f", commit {report.commit[:12]}{changed}" if report.commit else ""
    yield f"`{report.command}`, {report.date[:10]}{commit}; {threads}{versions}."
    measured = [result for result in report.results if result.ours is not None]
    if growth:
        yield from _table(GROWTH, growth_rows(measured))
    else:
        yield from _table(COMPARISON, comparison_rows(measured))
        yield from _table(PEERS, peer_rows(measured))
    problems = list(problem_rows(report.results))
    if problems:
        yield from _table(("name", "not measured completely"), problems)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield _row(columns)
    yield "|" + "---|" * len(columns)
    for name, *cells in rows:
        yield _row([f"`{name}`", *cells])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _is_cpu(report: BenchmarkReport) -> bool:
    return all(result.device == "cpu" for result in report.results)


def write_page() -> None:
    """Write the page from the results in this folder."""
    PAGE.write_text(render(read_reports(), read_limits()), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    write_page()
