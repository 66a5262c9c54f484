"""Measures all benchmarks on this machine and writes docs/performance.md.

    python -m lab.benchmarks [--device cpu|cuda] [--limit SECONDS] [--results FOLDER] [NAME]...

Writes two files for each device: the comparison with the peers, and how our cost grows with the
parameters in `sweep`. With --results the files are written to another folder than
lab/benchmarks/results, and the page is not written.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import torch

from lab.benchmarks.page import RESULTS, write_page
from zoo_lab.environment import describe_hardware

GROWTH = ["--sweep", "--no-peers"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks; default: all")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: both, if available")
    parser.add_argument("--limit", default="300", help="seconds for each benchmark")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the JSON files")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    available = ["cuda", "cpu"] if torch.cuda.is_available() else ["cpu"]
    for device in [options.device] if options.device else available:
        hardware = str(describe_hardware(torch.device(device))["device"])
        name = re.sub("[^a-z0-9]+", "-", f"{device} {hardware}".lower()).strip("-")
        for mode, suffix in (([], ""), (GROWTH, "-growth")):
            file = options.results / f"{name}{suffix}.json"
            arguments = ["--device", device, "--limit", options.limit, "--json", str(file), *mode]
            command = [sys.executable, "-m", "zoo", "bench", *options.names, *arguments]
            subprocess.run(command, check=False)  # a failed benchmark is in the results
    if options.results == RESULTS:
        write_page()


if __name__ == "__main__":
    main()
