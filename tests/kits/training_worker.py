"""Trains in each process of a torchrun job; the arguments are the folders of files and results."""

import json
import os
import signal
import sys
from pathlib import Path

from plot_kit import write_empty
from torch.distributed.tensor import DTensor
from training_kit import make_spec

import zoo
from zoo.training import run_log
from zoo.training.callback import Callback
from zoo.training.setup import Setup


class KillProcess(Callback):
    """Kills the main process after a step."""

    def on_step(self, step):
        if step == 2:
            os.kill(os.getpid(), signal.SIGKILL)


def record_sharding(found):
    """Record how the parameters of each run are stored, when it ends."""
    original = Setup.close

    def close(setup):
        parameters = list(setup.model.parameters())
        local = [p.to_local() if isinstance(p, DTensor) else p for p in parameters]
        found.append(
            {
                "parameters": len(parameters),
                "sharded": sum(isinstance(p, DTensor) for p in parameters),
                "all": sum(p.numel() for p in parameters),
                "local": sum(p.numel() for p in local),
            }
        )
        original(setup)

    Setup.close = close


def main():
    files, output = map(Path, sys.argv[1:])
    settings = json.loads((output / "settings.json").read_text())

    def spec_of(steps, **changes):
        return make_spec(files, **{**settings, "steps": steps, **changes})

    found = []
    record_sharding(found)

    def train(steps, name, parallel, **options):
        options = {"device": "cpu", "parallel": parallel, **options}
        return zoo.train(spec_of(steps), output=output / name, **options)

    steps = settings["steps"]
    train(steps, "ddp", "ddp")
    train(steps, "fsdp", "fsdp")
    train(8, "resumed", "ddp")
    train(steps, "resumed", "ddp", resume=True)
    for end, parallel in ((3, "ddp"), (6, "fsdp"), (9, "ddp")):
        train(end, "resharded", parallel, resume=True)
    frozen = json.loads((output / "frozen.json").read_text())
    for parallel in ("ddp", "fsdp"):
        for end in (5, 8):
            zoo.train(
                spec_of(end, **frozen),
                output=output / f"frozen-{parallel}",
                device="cpu",
                parallel=parallel,
                resume=end > 5,
            )
    if os.environ["RANK"] == "0":
        (output / "sharding.json").write_text(json.dumps(found))
    train(steps, "killed", "ddp", callbacks=[KillProcess()])


run_log.write_png = write_empty
main()
