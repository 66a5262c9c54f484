"""Training of a large model in limited GPU memory: the plan of `zoo plan` against the peak.

The sizes '1b' are those of Llama 3.2 1B, trained in bfloat16 with AdamW and recomputed activations.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import zoo
from zoo_lab.benchmarks.language.llama import SIZES
from zoo_lab.plan.memory_plan import make_plan
from zoo_lab.plan.plan_options import parse_batch, parse_devices

STEPS = 6
TOLERANCE = 0.1
"""Largest difference between the plan and the measured peak, relative to the peak."""


def write_spec(folder: Path, size: str, length: int) -> dict[str, Any]:
    """Write texts of the length and their tokenizer; return the spec of a training on them."""
    texts, tokenizer = folder / "texts.txt", folder / "tokenizer.json"
    letters = random.Random(0)
    # bos and eos are added to each text, and the model does not read the last token
    lines = ("".join(letters.choices("abcdefgh", k=length - 1)) for _ in range(STEPS))
    texts.write_text("\n".join(lines), encoding="utf-8")
    special = ("pad", "bos", "eos", "unk")
    zoo.train_tokenizer([str(texts)], str(tokenizer), type="characters", special=special)
    spec = SIZES[size].spec()
    spec["model"] |= {"bos": 1, "eos": 2}
    training = {
        "data": {"type": "plain-text", "files": str(texts)},
        "batch": {"items": 1},
        "steps": STEPS,
        "optimiser": {"type": "adamw", "lr": 1e-5},
        "precision": "bfloat16",
        "checkpointing": True,
    }
    text = {"type": "text", "tokenizer": str(tokenizer)}
    return {**spec, "preprocessing": {"target": text}, "train": training}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="1b")
    parser.add_argument("--length", type=int, default=2048, help="tokens of a text")
    parser.add_argument("--gigabytes", type=float, default=24.0, help="memory of the process")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spec = write_spec(Path(folder), options.size, options.length)
        batch = parse_batch(f"1x{options.length}")
        plan = make_plan(spec, parse_devices("single"), batch=batch, precision="bfloat16")
        print(f"planned {plan.total / 1e9:.2f} GB", flush=True)
        if not torch.cuda.is_available():
            print("not measured: torch finds no CUDA device")
            return
        memory = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, options.gigabytes * 1e9 / memory))
        zoo.train(spec, output=Path(folder) / "run", device="cuda")
    peak = torch.cuda.max_memory_allocated()
    ratio = plan.total / peak
    print(f"measured {peak / 1e9:.2f} GB of {options.gigabytes:g}, planned {ratio:.3f} x")
    sys.exit(abs(ratio - 1) > TOLERANCE)


if __name__ == "__main__":
    main()
