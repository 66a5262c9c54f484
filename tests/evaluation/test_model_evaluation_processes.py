"""`evaluate_model` in two processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = """
import json, sys
import torch
from kits.evaluation_kit import ListBatches, random_tokens, varied_translator
from zoo.evaluation.model_evaluation import evaluate_model
from zoo.registry.component_registry import default_registry

rank, world, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if world > 1:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=world
    )
build = lambda kind, name: default_registry().get(kind, name).cls()
rows = random_tokens(10, 16, torch.Generator().manual_seed(0))
targets = [torch.cat([torch.tensor([1]), row.flip(0), torch.tensor([2])]) for row in rows]
examples = [{"source": s, "target": t} for s, t in zip(rows, targets)]
references = [[" ".join(f"w{token}" for token in row.tolist())] for row in rows]
result = evaluate_model(
    varied_translator(),
    ListBatches(examples, references, size=3),
    [build("metric", name) for name in ("chrf", "accuracy", "perplexity")],
    objective=build("objective", "cross-entropy"),
    sampler=build("sampler", "greedy"),
    max_length=9,
    rank=rank,
    world=world,
)
print(json.dumps([result.values, result.hypotheses, result.references, result.examples]))
"""


def run(world, store):
    command = [sys.executable, "-c", WORKER]
    tests = str(Path(__file__).parents[1])
    workers = [
        subprocess.Popen([*command, str(rank), str(world), store], stdout=-1, cwd=tests)
        for rank in range(world)
    ]
    outputs = [worker.communicate(timeout=120)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * world
    return [json.loads(output.splitlines()[-1]) for output in outputs]


@pytest.mark.slow
def test_two_processes_return_the_results_of_one(tmp_path):
    ((expected, *texts),) = run(1, "")
    for values, *rest in run(2, str(tmp_path / "store")):
        assert values == pytest.approx(expected, rel=1e-5)
        assert rest == texts
