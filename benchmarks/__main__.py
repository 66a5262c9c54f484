"""Measures all benchmarks on this machine and writes docs/performance.md.

    python -m benchmarks [--limit SECONDS] [--device cpu|cuda] [NAME]...

Writes two files for each device to benchmarks/results: the comparison with the peers, and how our
cost grows with the parameters in `sweep`.
"""

import argparse
import re
import subprocess
import sys

import torch

from benchmarks.page import PAGE, RESULTS, read_reports, render
from zoo.benchmarking.environment import describe_hardware


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks; default: all")
    parser.add_argument("--limit", default="300", help="seconds for each benchmark")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: both, if available")
    options = parser.parse_args()
    available = ["cuda", "cpu"] if torch.cuda.is_available() else ["cpu"]
    for device in [options.device] if options.device else available:
        name = _file_name(str(describe_hardware(torch.device(device))["device"]))
        for mode, suffix in (([], ""), (["--sweep", "--no-peers"], "-growth")):
            file = RESULTS / f"{device}-{name}{suffix}.json"
            arguments = ["--device", device, "--limit", options.limit, "--json", str(file), *mode]
            command = [sys.executable, "-m", "zoo", "bench", *options.names, *arguments]
            subprocess.run(command, check=False)  # a failed benchmark is in the results
    PAGE.write_text(render(read_reports()), encoding="utf-8")


def _file_name(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


if __name__ == "__main__":
    main()
