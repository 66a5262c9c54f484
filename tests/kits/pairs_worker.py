"""Trains in each process of a torchrun job; the arguments are a file with runs and a folder."""

import json
import sys
from pathlib import Path

from plot_kit import write_empty

import zoo
from zoo.training import run_log

run_log.write_png = write_empty
runs, output = map(Path, sys.argv[1:])
for run in json.loads(runs.read_text()):
    for steps in run["steps"]:
        spec = {**run["spec"], "train": {**run["spec"]["train"], "steps": steps}}
        options = {"parallel": run["parallel"], "resume": steps != run["steps"][0]}
        zoo.train(spec, output=output / run["name"], device="cpu", **options)
