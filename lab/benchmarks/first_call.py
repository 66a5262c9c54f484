"""Loading of a model and its first calls in a new process, with kernels to compile and without.

Two processes in turn have the same cache of kernels, which is empty for the first of them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

import zoo
from zoo import Model
from zoo_lab.benchmarks.language.generation import generate
from zoo_lab.benchmarks.language.llama import SIZES

CALLS = 5
PROCESSES = ("empty cache of kernels", "all kernels in the cache")


def save(size: str, device: torch.device, folder: Path) -> Path:
    """Save a model with random weights and return its folder."""
    zoo.save(SIZES[size].build(device), folder)
    return folder


def measure(
    saved: Path, size: str, device: torch.device, rows: int, prompt: int, length: int
) -> tuple[float, list[float]]:
    """Return the seconds of loading, and of each of the first calls."""
    start = time.perf_counter()
    model: Model = zoo.load(saved, device=device)
    if device.type == "cuda":
        torch.cuda.synchronize()
    loading = time.perf_counter() - start
    model.eos = ()  # no token ends a sequence
    times = []
    for seed in range(CALLS):
        torch.manual_seed(seed)
        prompts = torch.randint(3, SIZES[size].vocab, (rows, prompt)).tolist()
        start = time.perf_counter()
        generate(model, prompts, length)
        times.append(time.perf_counter() - start)
    return loading, times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="1b")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of a prompt")
    parser.add_argument("--length", type=int, default=64, help="tokens that are generated")
    parser.add_argument("--saved", type=Path, help="measure this model in this process only")
    options = parser.parse_args()
    device, sizes = torch.device(options.device), (options.rows, options.prompt, options.length)
    if options.saved:
        loading, times = measure(options.saved, options.size, device, *sizes)
        print("".join(f"{1000 * seconds:>10.1f}" for seconds in (loading, *times)))
        return
    calls = "".join(f"{f'call {number + 1}':>10}" for number in range(CALLS))
    print(f"{'ms':26}{'load':>10}{calls}")
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        saved = save(options.size, device, Path(folder) / "model")
        for name in PROCESSES:
            print(f"{name:26}", end="", flush=True)
            command = [sys.executable, __file__, *sys.argv[1:], "--saved", str(saved)]
            subprocess.run(command, check=True, env=os.environ | {"TRITON_CACHE_DIR": cache})


if __name__ == "__main__":
    main()
