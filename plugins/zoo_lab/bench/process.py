"""Measuring each benchmark in its own process, with a time limit."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from zoo_lab.bench.result import BenchmarkReport, BenchmarkResult, ResultCallback
from zoo_lab.bench.selection import BenchmarkCase
from zoo_lab.process_pool import ENDED, run_in_workers

_WATCH_SECONDS = 1.0


@dataclass(frozen=True)
class BenchOptions:
    """BenchOptions of the measurements, as of ``zoo bench``."""

    device: str
    repeats: int = 20
    peers: bool = True
    sweep: bool = False

    def arguments(self) -> list[str]:
        """Return the options as written on the command line."""
        given = ["--device", self.device, "--repeats", str(self.repeats)]
        given += [] if self.peers else ["--no-peers"]
        return [*given, "--sweep"] if self.sweep else given

    def measure(self, case: BenchmarkCase, progress: ResultCallback) -> BenchmarkResult:
        """Measure a benchmark in this process; `progress` gets the result after each step."""
        import torch

        from zoo_lab.bench.running import run_benchmark

        device = torch.device(self.device)
        return run_benchmark(
            case, device, repeats=self.repeats, peers=self.peers, progress=progress
        )


class TimeLimits:
    """How long benchmarks may run.

    Args:
        each: seconds for each benchmark, in its own process; 0: no limit.
        total: seconds for all benchmarks from now on; 0: no limit.
    """

    def __init__(self, each: float, total: float = 0.0) -> None:
        self._each, self._total = each, total
        self._started = time.monotonic()

    def next_seconds(self) -> float | None:
        """Return the seconds for the next benchmark: 0 if none are left, None without limits."""
        limits = [self._each] if self._each else []
        if self._total:
            limits.append(max(0.0, self._started + self._total - time.monotonic()))
        return min(limits, default=None)


@dataclass(frozen=True)
class BenchTask:
    """A benchmark to measure, and the files of its results and of what it prints."""

    benchmark: str
    overrides: tuple[str, ...]
    options: BenchOptions
    file: Path
    output: Path


def run_in_process(
    case: BenchmarkCase,
    options: BenchOptions,
    *,
    max_seconds: float,
    progress: Callable[[Sequence[BenchmarkResult]], None] = lambda results: None,
) -> list[BenchmarkResult]:
    """Measure a benchmark in a new process and return its results, several for a sweep.

    The process is ended after `max_seconds`; the results then have what was measured until then,
    and the last one the reason. Without seconds, nothing is measured.

    Args:
        progress: called with the results so far, while the process runs.
    """
    if max_seconds <= 0:
        result = _empty_result(case, options)
        result.problem = "not measured: the time of the run is over"
        return [result]
    with tempfile.TemporaryDirectory() as folder:
        file, output = Path(folder) / "result.json", Path(folder) / "output.txt"
        task = BenchTask(case.entry.reference, tuple(case.overrides), options, file, output)
        with _watched(file, progress):
            (outcome,) = run_in_workers([task], measure_task, 1, max_seconds=max_seconds)
        results = _read(file) or [_empty_result(case, options)]
        problem = outcome.problem
        if problem is not None and problem.startswith(ENDED):
            problem += _last_line(output)
    if problem is not None and all(result.problem is None for result in results):
        results[-1].problem = problem
    return results


@contextmanager
def _watched(file: Path, progress: Callable[[Sequence[BenchmarkResult]], None]) -> Iterator[None]:
    """Call `progress` with the results in a file when they have changed, inside the block."""
    ended = threading.Event()

    def watch() -> None:
        seen: list[BenchmarkResult] = []
        while not ended.wait(_WATCH_SECONDS):
            results = _read(file)
            if results and results != seen:
                seen = results
                progress(results)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def measure_task(task: BenchTask) -> None:
    """Measure a benchmark in this process; the results are written after each step."""
    import torch

    from zoo_lab.bench.benchmark_report import ReportWriter
    from zoo_lab.bench.selection import select_cases, sweep_cases

    with task.output.open("w", encoding="utf-8") as output:
        for stream in (1, 2):  # also what libraries print
            os.dup2(output.fileno(), stream)
    options, device = task.options, torch.device(task.options.device)
    (case,) = select_cases([task.benchmark], device.type, task.overrides)
    writer = ReportWriter(task.file, [], device)
    results: list[BenchmarkResult] = []
    for each in sweep_cases(case) if options.sweep else [case]:
        results.append(options.measure(each, lambda running: writer.write([*results, running])))
        writer.write(results)


def _empty_result(case: BenchmarkCase, options: BenchOptions) -> BenchmarkResult:
    return BenchmarkResult(
        benchmark=case.entry.name,
        plugin=case.entry.plugin,
        summary=case.entry.summary,
        params=case.params,
        changed=dict(case.changed),
        device=options.device,
    )


def _last_line(output: Path) -> str:
    """Return the last line that a process has printed, as the end of a message."""
    try:
        text = output.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {lines[-1]}" if lines else ""


def _read(file: Path) -> list[BenchmarkResult]:
    try:
        return list(BenchmarkReport.model_validate_json(file.read_text(encoding="utf-8")).results)
    except (OSError, ValidationError):
        return []
