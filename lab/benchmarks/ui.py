"""``zoo ui``: time to the page, to the registry and of checks, and the size of its files.

Each start is a new process; the index of plugins is built before, and the smallest time is printed.
Checks are those of a page in which keys are pressed, of several specs in turn; times are those
of the whole request.

    python lab/benchmarks/ui.py [STARTS] [CHECKS]
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import zoo_ui

SPECS = ("bahdanau-2015", "transformer-base", "gpt2-small", "gat-cora", "vit-base")
COMMAND = [sys.executable, "-m", "zoo", "ui", "--no-browser", "--port", "0"]


class RunningUi:
    """A server, and the seconds from its start to its first page and to its registry."""

    def __init__(self) -> None:
        started = time.perf_counter()
        self.process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        address = urlsplit(self.process.stdout.readline().strip())
        self.base = f"http://{address.netloc}"
        self.token = address.query.removeprefix("token=")
        self.request("/", None)
        self.page = time.perf_counter() - started
        self.request("/api/registry", None)
        self.registry = time.perf_counter() - started

    def request(self, path: str, body: Any) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}"}
        asked = urllib.request.Request(self.base + path, data, headers)
        with urllib.request.urlopen(asked) as answer:
            return bytes(answer.read())

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def measure_checks(ui: RunningUi, count: int) -> list[float]:
    """Return the seconds of the checks of each spec, after one that is not measured."""
    seconds = []
    sequence = 0
    for name in SPECS:
        data = json.loads(ui.request("/api/spec", {"source": name}))["data"]
        for number in range(count + 1):
            sequence += 1
            data["description"] = f"typed {number}"
            started = time.perf_counter()
            ui.request("/api/check", {"page": "benchmark", "sequence": sequence, "data": data})
            if number > 0:
                seconds.append(time.perf_counter() - started)
    return seconds


def main() -> None:
    starts, checks = (int(text) for text in (sys.argv[1:] + ["5", "20"][len(sys.argv) - 1 :]))
    subprocess.run([sys.executable, "-m", "zoo", "list"], check=True, stdout=subprocess.DEVNULL)
    pages, registries = [], []
    for number in range(starts):
        ui = RunningUi()
        pages.append(ui.page)
        registries.append(ui.registry)
        if number == starts - 1:
            seconds = measure_checks(ui, checks)
        ui.stop()
    static = Path(zoo_ui.__file__).parent / "static"
    files = [path for path in static.rglob("*") if path.is_file() and "katex" not in path.parts]
    print(f"{'page':<24}{min(pages):>9.3f} s  at most 0.5")
    print(f"{'registry':<24}{min(registries):>9.3f} s  at most 3")
    p90 = statistics.quantiles(seconds, n=10)[-1]
    print(f"{'check, median':<24}{statistics.median(seconds):>9.3f} s")
    print(f"{'check, 90th percentile':<24}{p90:>9.3f} s  at most 0.4")
    size = sum(path.stat().st_size for path in files) / 1000
    print(f"{'files beside KaTeX':<24}{size:>9.1f} kB at most 150")


if __name__ == "__main__":
    main()
