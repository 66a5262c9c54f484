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

from zoo.benchmarking.result import BenchmarkResult, Report
from zoo.benchmarking.selection import Case


@dataclass(frozen=True)
class Options:
    """Options of the measurements, as of ``zoo bench``."""

    device: str
    repeats: int = 20
    peers: bool = True

    def arguments(self) -> list[str]:
        """Return the options as written on the command line."""
        given = ["--device", self.device, "--repeats", str(self.repeats)]
        return given if self.peers else [*given, "--no-peers"]


def run_in_process(case: Case, options: Options, *, limit: float) -> BenchmarkResult:
    """Run ``zoo bench`` in a new process and return its result.

    The process is ended after `limit` seconds; the result then has what was measured until then.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        overrides = [part for text in case.overrides for part in ("--set", text)]
        arguments = [*options.arguments(), *overrides, "--limit", "0", "--json", str(file)]
        command = [sys.executable, "-m", "zoo", "bench", case.entry.reference, *arguments]
        problem = _run(command, limit, Path(folder) / "output.txt")
        result = _read(file) or BenchmarkResult(
            benchmark=case.entry.name,
            plugin=case.entry.plugin,
            summary=case.entry.summary,
            params=case.params,
            changed=dict(case.changed),
            device=options.device,
        )
    if problem is not None and result.problem is None:
        result.problem = problem
    return result


def _run(command: list[str], limit: float, output: Path) -> str | None:
    """Run a command; return why it failed, or None."""
    with output.open("w+", encoding="utf-8", errors="replace") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            return f"stopped after {limit:g} s"
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


def _read(file: Path) -> BenchmarkResult | None:
    try:
        return Report.model_validate_json(file.read_text(encoding="utf-8")).results[0]
    except (OSError, ValidationError, IndexError):
        return None
