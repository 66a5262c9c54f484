"""A step of the training engine against the same step written by hand, and with its data pipeline.

``-o FILE`` writes the figures as JSON. Segments of the three loops alternate in one process.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import zoo
from zoo.training.processes import Processes
from zoo.training.setup import Setup, build_setup, read_request

SEGMENTS, STEPS, WARMUP = 12, 40, 30


def make_spec(folder: Path, precision: str, tokens: int) -> dict[str, Any]:
    """Return a spec of a Transformer on Multi30k, in $ZOO_DATA/multi30k."""
    data = Path(os.environ["ZOO_DATA"]) / "multi30k"
    text = {"type": "text", "tokenizer": str(folder / "words.json")}
    return {
        "zoo": 1,
        "name": "multi30k",
        "extends": "transformer-base",
        "model": {"source": {"vocab": 10_000}},
        "preprocessing": {"source": text, "target": text},
        "train": {
            "data": {
                "type": "parallel-text",
                "source": str(next(data.glob("train*.en*"))),
                "target": str(next(data.glob("train*.de*"))),
            },
            "optimiser": {"type": "adamw", "lr": 1e-4},
            "batch": {"tokens": tokens},
            "clip": 1.0,
            "precision": precision,
            "steps": 10_000,
        },
    }


def by_hand(setup: Setup, batch: dict[str, torch.Tensor], precision: str) -> Callable[[], None]:
    """Return a step as a user writes it."""
    model, objective, optimiser = setup.model, setup.objective, setup.optimiser
    device, parameters = setup.processes.device, list(setup.model.parameters())

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            loss = objective(model(batch))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def segment(step: Callable[[], None], device: torch.device) -> float:
    """Return the seconds of a number of steps."""
    started = time.perf_counter()
    for _ in range(STEPS):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - started) / STEPS


def measure(precision: str, tokens: int) -> dict[str, float]:
    """Return the median milliseconds of each step, and of the ratios of neighbouring segments."""
    with tempfile.TemporaryDirectory() as folder:
        files = make_spec(Path(folder), precision, tokens)["train"]["data"]
        text = [files["source"], files["target"]]
        special = ("pad", "bos", "eos", "unk")  # in the order of the model's IDs
        output = Path(folder) / "words.json"
        zoo.train_tokenizer(text, output, type="words", vocab=10_000, special=special)
        request = read_request(make_spec(Path(folder), precision, tokens), (), None, None)
        processes = Processes(Path(folder), precision=precision)
        setup = build_setup(request, processes)
        setup.model.train()
        updates = setup.batches.epoch(0)
        cached = next(updates).batches[0]
        assert cached is not None
        on_device = {key: tensor.to(processes.device) for key, tensor in cached.items()}
        sizes = [tensor.shape for tensor in on_device.values()]
        print(f"batch: {sizes}")
        steps = {
            "hand": by_hand(setup, on_device, precision),
            "engine": lambda: setup.step([on_device]) and None,
        }
        for step in steps.values():
            for _ in range(WARMUP):
                step()
        times: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(SEGMENTS):
            for name, step in steps.items():
                times[name].append(segment(step, processes.device))
        times |= measure_pipeline(setup, processes.device)
        setup.close()
        processes.close()
    result = {f"{name} ms": 1e3 * statistics.median(values) for name, values in times.items()}
    for name, base in (("engine", "hand"), ("pipeline", "cached")):
        ratios = [a / b for a, b in zip(times[name], times[base], strict=True)]
        result[f"{name} / {base}"] = statistics.median(ratios)
    return result


def measure_pipeline(setup: Setup, device: torch.device) -> dict[str, list[float]]:
    """Return the seconds of steps with batches as they are read, and with the same in memory."""
    times: dict[str, list[float]] = {"pipeline": [], "cached": []}
    updates = setup.batches.epoch(1)
    kept: list[Any] = []

    def read() -> None:
        batches = next(updates).batches
        kept.append([{key: t.to(device) for key, t in b.items()} for b in batches if b])
        setup.step(batches)

    for _ in range(SEGMENTS):
        times["pipeline"].append(segment(read, device))
        times["cached"].append(segment(lambda: setup.step(kept.pop()) and None, device))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--tokens", type=int, default=4096)
    options = parser.parse_args()
    results = {}
    for precision in ("float32", "bfloat16"):
        results[precision] = measure(precision, options.tokens)
        for name, value in results[precision].items():
            print(f"{precision}: {name} {value:.3f}")
    if options.output:
        options.output.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
