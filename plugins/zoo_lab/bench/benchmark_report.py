"""The report of a run, written as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import torch

from zoo.files import atomic_write
from zoo_lab.bench.result import BenchmarkReport, BenchmarkResult
from zoo_lab.environment import describe_hardware, find_commit, find_versions


class ReportWriter:
    """Writes the results of a run to a file, as often as there are new ones.

    Args:
        file: the JSON file.
        arguments: the command line.
        device: the device of the run.
    """

    def __init__(self, file: Path, arguments: Sequence[str], device: torch.device) -> None:
        self.file = file
        self._report = BenchmarkReport(
            command=shlex.join(arguments),
            commit=find_commit(),
            date="",
            hardware=describe_hardware(device),
            versions=find_versions(),
            results=[],
        )

    def write(self, results: Sequence[BenchmarkResult]) -> None:
        """Replace the file with one that has these results."""
        with atomic_write(self.file) as temporary:
            temporary.write_text(self.format(results) + "\n", encoding="utf-8")

    def format(self, results: Sequence[BenchmarkResult]) -> str:
        """Return the report with these results as JSON."""
        date = datetime.now(UTC).isoformat(timespec="seconds")
        packages = {name: text for result in results for name, text in result.versions.items()}
        update = {
            "date": date,
            "results": list(results),
            "versions": {**self._report.versions, **packages},
        }
        report = self._report.model_copy(update=update)
        return report.model_dump_json(indent=1)
