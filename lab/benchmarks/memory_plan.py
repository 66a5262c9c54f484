"""The memory of `zoo plan` against training steps on a GPU.

Without a GPU only the plans are printed. ``-o FILE`` writes the figures as JSON.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

import zoo
from zoo.training.local_step import LossModule
from zoo_lab.bench.memory import release_memory
from zoo_lab.plan.memory_plan import MemoryPlan, make_batch, make_plan
from zoo_lab.plan.plan_options import parse_batch, parse_devices

CASES = (
    ("transformer-base", "32x128"),
    ("transformer-base", "64x50x60"),
    ("transformer-base", "8x512"),
    ("gpt2-small", "8x512"),
    ("bert-base", "32x128"),
    ("bahdanau-2015", "64x30"),
    ("sutskever-2014", "64x30"),
    ("show-attend-tell-soft", "32x20"),
    ("gat-cora", "1x2708"),
    ("ram-mnist", "256x20"),
    ("draw-mnist", "128x28"),
    ("deepspeech-ctc", "16x200"),
    ("deepspeech-ctc", "8x300"),
    ("luong-2015", "64x30"),
    ("vit-base", "32x196"),
)
PRECISIONS = ("float32", "bfloat16")
STEPS = 3


def measure(name: str, batch: str, precision: str) -> dict[str, int]:
    """Train a few steps on the GPU; return the bytes at the loss and at the peak of the last,
    without those that were allocated before."""
    release_memory(torch.device("cuda"))  # also the workspaces of earlier cases
    before = torch.cuda.memory_allocated()
    model = zoo.compose(name, device="cuda")
    loss_module = zoo.accelerate(LossModule(model, zoo.objective(name)))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    inputs = make_batch(model, parse_batch(batch))
    for _ in range(STEPS):
        torch.cuda.reset_peak_memory_stats()
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16"):
            loss = loss_module(inputs)
        at_loss = torch.cuda.memory_allocated()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        del loss
    peak = torch.cuda.max_memory_allocated() - before
    return {"at_loss": at_loss - before, "peak": peak, "before": before}


def plan(name: str, batch: str, precision: str) -> MemoryPlan:
    """Return the plan for one device, with AdamW."""
    return make_plan(name, parse_devices("single"), batch=parse_batch(batch), precision=precision)


def compare(name: str, batch: str, precision: str) -> dict[str, Any]:
    """MemoryPlan one case and, on a GPU, measure it."""
    row: dict[str, Any] = {"spec": name, "batch": batch, "precision": precision}
    try:
        planned = plan(name, batch, precision)
        row |= {"planned": planned.total, "plan": planned.as_json()}
        if torch.cuda.is_available():
            row |= measure(name, batch, precision)
            row["ratio"] = row["planned"] / row["peak"]
    except (zoo.ZooError, RuntimeError) as error:  # the other cases are still measured
        row["error"] = str(error).splitlines()[0]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="names of specs")
    options = parser.parse_args()
    rows = []
    print(f"{'spec':<24}{'batch':>10}{'precision':>10}{'planned':>10}{'measured':>10}{'ratio':>7}")
    for name, batch in CASES:
        for precision in PRECISIONS:
            if options.only and name not in options.only:
                continue
            row = compare(name, batch, precision)
            rows.append(row)
            figures = "".join(
                f"{row[key] / 1e6:>10.1f}" if key in row else f"{'':>10}"
                for key in ("planned", "peak")
            )
            ratio = f"{row['ratio']:>7.2f}" if "ratio" in row else ""
            error = f"  {row['error']}" if "error" in row else ""
            print(f"{name:<24}{batch:>10}{precision:>10}{figures}{ratio}{error}", flush=True)
    if options.output:
        options.output.write_text(json.dumps({"torch": torch.__version__, "rows": rows}, indent=1))
    wrong = [row for row in rows if not 0.85 <= row.get("ratio", 1) <= 1.15 or "error" in row]
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
