"""Measuring each benchmark in its own process, with a time limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from zoo_lab.bench.result import BenchmarkReport, BenchmarkResult
from zoo_lab.bench.selection import BenchmarkCase


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


def run_in_process(
    case: BenchmarkCase, options: BenchOptions, *, max_seconds: float
) -> list[BenchmarkResult]:
    """Run ``zoo bench`` in a new process and return its results, several for a sweep.

    The process is ended after `max_seconds`; the results then have what was measured until then,
    and the last one the reason.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        overrides = [part for text in case.overrides for part in ("--set", text)]
        arguments = [*options.arguments(), *overrides, "--limit", "0", "--json", str(file)]
        command = [sys.executable, "-m", "zoo", "bench", case.entry.reference, *arguments]
        problem = _run(command, max_seconds, Path(folder) / "output.txt")
        results = _read(file) or [_empty_result(case, options)]
    if problem is not None and all(result.problem is None for result in results):
        results[-1].problem = problem
    return results


def _empty_result(case: BenchmarkCase, options: BenchOptions) -> BenchmarkResult:
    return BenchmarkResult(
        benchmark=case.entry.name,
        plugin=case.entry.plugin,
        summary=case.entry.summary,
        params=case.params,
        changed=dict(case.changed),
        device=options.device,
    )


def _run(command: list[str], max_seconds: float, output: Path) -> str | None:
    """Run a command; return why it failed, or None."""
    with output.open("w+", encoding="utf-8", errors="replace") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        try:
            code = process.wait(timeout=max_seconds)
        except subprocess.TimeoutExpired:
            return f"stopped after {max_seconds:g} s"
        finally:  # also after Ctrl-C
            _end(process)
        file.seek(0)
        lines = [line.strip() for line in file if line.strip()]
    if code == 0:
        return None
    return f"ended with exit code {code}{f': {lines[-1]}' if lines else ''}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it has started, such as compilers."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _read(file: Path) -> list[BenchmarkResult]:
    try:
        return list(BenchmarkReport.model_validate_json(file.read_text(encoding="utf-8")).results)
    except (OSError, ValidationError):
        return []
