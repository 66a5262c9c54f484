"""How many files of the project a call enters: the length of a reader's way through it.

    python lab/lives.py

prints the number for each life of a model; with ``--files`` the files too. A call is counted after
one warm call, in one thread, without accelerations. `tests/test_lives.py` holds the numbers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

import zoo

ROOT = Path(__file__).parents[1]
SPEC = "bahdanau-reversal"
TRAINING = """
extends: bahdanau-reversal
name: three-steps
train:
  data: {type: arrays, file: data.npz}
  batch: {items: 2}
  steps: 3
"""


def files_entered(call: Callable[[], object]) -> set[str]:
    """Return the files of the core and the plugins with a function that the second call runs."""
    call()
    found: set[str] = set()

    def profile(frame: object, event: str, argument: object) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)  # type: ignore[attr-defined]

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    tops = tuple(f"{ROOT / top}{os.sep}" for top in ("zoo", "plugins"))
    return {str(Path(name).relative_to(ROOT)) for name in found if name.startswith(tops)}


def lives(folder: Path) -> dict[str, Callable[[], object]]:
    """Return the lives of a small recurrent model by name; files are written to the folder."""
    model = zoo.compose(SPEC, seed=0)
    file = folder / "model.safetensors"
    zoo.save(model, file)
    batch = model.example(2, 5, torch.Generator().manual_seed(0))
    objective = zoo.objective(SPEC)
    optimiser = torch.optim.Adam(model.parameters())

    def step() -> None:
        objective(model(batch)).backward()
        optimiser.step()
        optimiser.zero_grad()

    def beam() -> object:
        sampler = {"type": "beam", "width": 2}
        return zoo.generate(model, [[3, 4, 5]], sampler=sampler, max_length=5)

    return {
        "compose": lambda: zoo.compose(SPEC, seed=0),
        "training step": step,
        "load": lambda: zoo.load(file),
        "beam search": beam,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, call in lives(Path(folder)).items():
            files = sorted(files_entered(call))
            print(f"{name:16}{len(files):4}")
            if "--files" in sys.argv[1:]:
                print("".join(f"    {file}\n" for file in files), end="")


if __name__ == "__main__":
    main()
