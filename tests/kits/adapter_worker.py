"""Trains adapters in each process of a torchrun job; arguments: folders of files and runs."""

import json
import sys
from pathlib import Path

from plot_kit import write_empty
from training_kit import make_spec

import zoo
from zoo.training import run_log


def main():
    files, output = map(Path, sys.argv[1:])
    settings = json.loads((output / "settings.json").read_text())
    spec = {**make_spec(files, **settings["train"]), "adapters": settings["adapters"]}
    half = {**spec, "train": {**spec["train"], "steps": settings["train"]["steps"] // 2}}
    zoo.train(half, output=output / "ddp", device="cpu", parallel="ddp")
    zoo.train(spec, output=output / "ddp", device="cpu", parallel="ddp", resume=True)
    zoo.train(spec, output=output / "fsdp", device="cpu", parallel="fsdp")


run_log.write_png = write_empty
main()
