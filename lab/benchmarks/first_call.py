"""The first calls of generation in a new process, with kernels to compile and without.

Two processes in turn have the same cache of kernels, which is empty for the first of them. The
device is initialised, and has multiplied matrices, before the first call.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import torch

from zoo_lab.benchmarks.language.generation import generate
from zoo_lab.benchmarks.language.llama import SIZES

CALLS = 5
PROCESSES = ("empty cache of kernels", "all kernels in the cache")


def measure(size: str, device: torch.device, rows: int, prompt: int, length: int) -> list[float]:
    """Return the seconds of each of the first calls."""
    shape = SIZES[size]
    model = shape.build(device)
    ones = torch.ones(64, 64, device=device)
    (ones @ ones).sum().item()
    times = []
    for seed in range(CALLS):
        torch.manual_seed(seed)
        prompts = torch.randint(3, shape.vocab, (rows, prompt)).tolist()
        start = time.perf_counter()
        generate(model, prompts, length)
        times.append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="1b")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of a prompt")
    parser.add_argument("--length", type=int, default=64, help="tokens that are generated")
    parser.add_argument("--here", action="store_true", help="measure in this process only")
    options = parser.parse_args()
    if options.here:
        sizes = options.rows, options.prompt, options.length
        times = measure(options.size, torch.device(options.device), *sizes)
        print("".join(f"{1000 * seconds:>10.1f}" for seconds in times))
        return
    print(f"{'ms of call':26}" + "".join(f"{number + 1:>10}" for number in range(CALLS)))
    with tempfile.TemporaryDirectory() as cache:
        for name in PROCESSES:
            print(f"{name:26}", end="", flush=True)
            command = [sys.executable, __file__, "--here", *sys.argv[1:]]
            subprocess.run(command, check=True, env=os.environ | {"TRITON_CACHE_DIR": cache})


if __name__ == "__main__":
    main()
