"""Trains in each process of a torchrun job: FILES OUTPUT MODE, or a JSON spec with --spec."""

import json
import os
import sys
from pathlib import Path

from torch.distributed.tensor import DTensor
from training_kit import make_spec

import zoo
from zoo.training.callback import Callback
from zoo.training.setup import Setup


class Placements(Callback):
    """Records how the parameters of the model are stored."""


def main() -> None:
    files, output, *modes = sys.argv[1:]
    settings = json.loads((Path(output) / "settings.json").read_text())
    spec = make_spec(Path(files), **settings)
    found = {}
    original = Setup.close

    def close(setup: Setup) -> None:
        parameters = list(setup.model.parameters())
        found["sharded"] = sum(isinstance(p, DTensor) for p in parameters)
        found["local"] = sum(
            p.to_local().numel() if isinstance(p, DTensor) else p.numel() for p in parameters
        )
        found["all"] = sum(p.numel() for p in parameters)
        original(setup)

    Setup.close = close
    for mode in modes:
        result = zoo.train(spec, output=Path(output) / mode, device="cpu", parallel=mode)
        if os.environ["RANK"] == "0":
            report = {**found, "values": dict(result.values)}
            (Path(output) / f"{mode}.json").write_text(json.dumps(report))


main()
