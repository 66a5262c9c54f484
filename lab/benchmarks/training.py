"""A training step with its data pipeline against cached batches, and against a step by hand.

Both are measured inside the loop of `zoo.train`: the batches of the run are replaced by an
iterator that alternates between segments of steps of each variant and measures their time.
``-o FILE`` writes the figures as JSON.
"""

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from training_cases import TEXTS, make_spec, write_files

from zoo.data.batches import Update
from zoo.training.interruption import Signals
from zoo.training.processes import Processes
from zoo.training.run_checkpoints import RunCheckpoints
from zoo.training.run_log import RunLog
from zoo.training.setup import Setup, build_setup, read_request
from zoo.training.state import RunState
from zoo.training.trainer import Trainer
from zoo_lab.plan.memory_plan import make_batch
from zoo_lab.plan.plan_options import BatchSize

CALLS_BEFORE_CAPTURE = 2
"""Steps of a shape before one is captured; most shapes occur in each epoch."""
AHEAD = 10
"""Steps of a segment that are not measured: more than the batches that were made before it."""

Batch = dict[str, Tensor]
Times = dict[str, list[float]]


class Measurement:
    """Takes the place of the batches of a run; measures the steps that it causes.

    Args:
        rounds: how often each variant is measured.
        steps: number of measured steps of a segment.
        warmup: number of steps of each variant before.
    """

    def __init__(self, setup: Setup, rounds: int, steps: int, warmup: int) -> None:
        self.setup, self.real = setup, setup.batches
        self.rounds, self.steps, self.warmup = rounds, steps, warmup
        self.device = setup.processes.device
        self.times: Times = {}
        self.tokens: list[int] = []
        self.skipped: dict[str, int] = {}
        self.done = 0

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the replaced batches."""
        return getattr(self.real, name)

    def updates(self, epoch: int) -> int:
        return self.setup.steps

    def epoch(self, epoch: int, **position: int) -> Iterator[Update]:
        """Yield the updates of all segments, then end the run."""
        for update in self.variants():
            self.done += 1
            yield update
        self.setup.steps = self.done

    def variants(self) -> Iterator[Update]:
        raise NotImplementedError

    def segment(self, name: str, updates: Iterable[Update]) -> Iterator[Update]:
        """Yield updates and add the mean time of their steps, without the first."""
        started = 0.0
        for index, update in enumerate(updates):
            if index == AHEAD:
                started = self.now()
            yield update
        self.times.setdefault(name, []).append((self.now() - started) / self.steps)

    def now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def on_device(self, update: Update) -> Update:
        batches = [
            batch and {key: tensor.to(self.device) for key, tensor in batch.items()}
            for batch in update.batches
        ]
        return Update(update.index, batches, update.items, update.tokens, [], str)


class Pipeline(Measurement):
    """Steps with batches as they are read, and with the same batches on the device."""

    def variants(self) -> Iterator[Update]:
        real = itertools.chain.from_iterable(map(self.real.epoch, itertools.count()))
        yield from itertools.islice(real, max(self.warmup, self._steps_before_captures()))
        for _ in range(self.rounds):
            read = list[Update]()
            updates = itertools.islice(real, AHEAD + self.steps)
            yield from self.segment("pipeline", _record(updates, read))
            cached = [self.on_device(update) for update in read]
            self.tokens += [update.tokens for update in read[AHEAD:]]
            yield from self.segment("cached", cached)

    def _steps_before_captures(self) -> int:
        """Return after how many steps those of most shapes are captured."""
        if self.device.type != "cuda":
            return 0
        return sum(map(self.real.updates, range(CALLS_BEFORE_CAPTURE + 1)))


def _record(updates: Iterable[Update], read: list[Update]) -> Iterator[Update]:
    for update in updates:
        read.append(update)
        yield update


class Engine(Measurement):
    """Steps of the engine and the same steps written by hand, on one batch on the device."""

    def __init__(self, setup: Setup, rounds: int, steps: int, warmup: int, size: BatchSize) -> None:
        super().__init__(setup, rounds, steps, warmup)
        self.batch: Batch = make_batch(setup.model, size)
        self.tokens = [sum(self.batch[key].numel() for key in ("source", "target"))]

    def variants(self) -> Iterator[Update]:
        items = len(next(iter(self.batch.values())))
        update = Update(0, [self.batch], items, self.tokens[0], [], str)
        by_hand = step_by_hand(self.setup)
        for _ in range(self.warmup):
            by_hand(self.batch)
            yield update
        for index in range(self.rounds):
            for name in ("engine", "by hand") if index % 2 else ("by hand", "engine"):
                updates = self.segment(name, itertools.repeat(update, AHEAD + self.steps))
                if name == "engine":
                    yield from updates
                else:
                    for _ in updates:
                        by_hand(self.batch)


def step_by_hand(setup: Setup) -> Callable[[Batch], None]:
    """Return a step as a user writes it, with the parameter groups of the engine."""
    model, objective, training = setup.model, setup.objective, setup.training
    kept = ("params", "weight_decay")
    groups = [{key: group[key] for key in kept} for group in setup.optimiser.param_groups]
    optimiser = torch.optim.AdamW(groups, lr=1e-4, fused=True)
    parameters = list(model.parameters())
    device, steps = setup.processes.device, itertools.count(1)
    bfloat16 = training.precision == "bfloat16"

    def loss_of(batch: Batch) -> Tensor:
        loss: Tensor = objective(model(batch))
        return loss

    if training.compile:
        loss_of = torch.compile(loss_of)

    def step(batch: Batch) -> None:
        lr = 1e-4 * min(next(steps) / 4000, 1.0)
        for group in optimiser.param_groups:
            group["lr"] = lr
        with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
            loss = loss_of(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def run(spec: dict[str, Any], measure: Callable[[Setup], Measurement], device: str | None) -> Any:
    """Train with a measurement in place of the data, and return it."""
    torch.compiler.reset()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        request = read_request(spec, (), None, None)
        processes = Processes(folder, device=device, precision=request.training.precision)
        setup = build_setup(request, processes)
        real, measurement = setup.batches, measure(setup)
        setup.batches = measurement  # type: ignore[assignment]
        checkpoints = RunCheckpoints(folder, setup, lower={"loss": True})
        log = RunLog(folder / "log.jsonl", processes)
        trainer = Trainer(setup, RunState(), log, checkpoints, (), dict)
        trainer.train(Signals())
        log.close()
        real.close()
        processes.close()
    return measurement


def summarise(found: Measurement, name: str, base: str) -> dict[str, Any]:
    """Return median times, the median ratio of neighbouring segments, and tokens per second."""
    ratios = [a / b for a, b in zip(found.times[name], found.times[base], strict=True)]
    median = {key: statistics.median(values) for key, values in found.times.items()}
    return {
        **{f"{key} ms": round(1e3 * value, 4) for key, value in median.items()},
        f"{name} / {base}": round(statistics.median(ratios), 4),
        "ratios": [round(ratio, 4) for ratio in sorted(ratios)],
        f"{name} tokens/s": round(statistics.fmean(found.tokens) / median[name]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--cases", default="small,base,images", help="also: tiny, for a CPU")
    parser.add_argument("--compile", default="no,yes", help="no, yes or both")
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--device")
    parser.add_argument("--batch", type=int, nargs=2, default=(64, 64), metavar=("ITEMS", "LENGTH"))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup", type=int, default=60)
    options = parser.parse_args()
    sizes = options.rounds, options.steps, options.warmup
    shape = BatchSize(options.batch[0], (options.batch[1], options.batch[1]))
    cases = options.cases.split(",")
    results: dict[str, Any] = {"device": options.device or "default", "torch": torch.__version__}
    if torch.cuda.is_available():
        results["device"] = torch.cuda.get_device_name()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = 1000 if cases == ["tiny"] else 20_000
        write_files(folder, lines=lines, images=2000 if "images" in cases else 0)
        for case, compiled in itertools.product(cases, options.compile.split(",")):
            settings = {"precision": options.precision, "compile": compiled == "yes"}
            spec = make_spec(case, folder, **settings)
            label = f"{case}{', compiled' * settings['compile']}"
            results[label] = row = {}
            if case in TEXTS:
                engine = run(spec, lambda setup: Engine(setup, *sizes, shape), options.device)
                row["step"] = summarise(engine, "engine", "by hand")
            found = run(spec, lambda setup: Pipeline(setup, *sizes), options.device)
            row["input"] = summarise(found, "pipeline", "cached")
            for figures in row.values():
                print(label, {k: v for k, v in figures.items() if k != "ratios"}, flush=True)
            if options.output:
                options.output.write_text(json.dumps(results, indent=2))
    print_table(results)


def print_table(results: dict[str, Any]) -> None:
    """Print the ratios of all cases, with their targets."""
    print(f"{'case':24}{'pipeline / cached (1.05)':>26}{'engine / by hand (1.02)':>26}")
    for label, row in results.items():
        if isinstance(row, dict):
            step = row.get("step", {}).get("engine / by hand", "-")
            print(f"{label:24}{row['input']['pipeline / cached']:>26}{step:>26}")


if __name__ == "__main__":
    main()
