"""Two processes that are killed and started again."""

import json
import random

import psutil
import pytest
import torch
from training_kit import ROOT, make_spec, set_dropout, torchrun, weights

WORKER = ROOT / "tests" / "kits" / "resume_worker.py"
STEPS = 60


def _kill_at(job, path, size):
    """Kill all processes of a job when a file has a size."""
    processes = []
    while not (path.exists() and path.stat().st_size >= size):
        assert job.poll() is None, job.stdout.read()
        processes = psutil.Process(job.pid).children(recursive=True)
        psutil.wait_procs(processes, timeout=0.02)
    for process in (psutil.Process(job.pid), *processes):
        process.kill()
    job.communicate()
    psutil.wait_procs(processes)


@pytest.mark.slow
def test_killed_processes_continue_as_one_run(files, tmp_path):
    spec = make_spec(
        files,
        steps=STEPS,
        log={"every": 1},
        checkpoints={"every": 7},
        evaluate={"every": 20},
        batch={"items": 7},
    )
    path, rng = tmp_path / "spec.json", random.Random(0)
    path.write_text(json.dumps(set_dropout(spec, 0.1)))
    whole = torchrun(WORKER, path, tmp_path / "whole")
    output, _ = whole.communicate()
    assert whole.returncode == 0, output
    log = tmp_path / "killed" / "log.jsonl"
    total = (tmp_path / "whole" / "log.jsonl").stat().st_size
    for part in (0.2, 0.5, 0.8):
        _kill_at(
            torchrun(WORKER, path, tmp_path / "killed"), log, total * (part + rng.random() / 8)
        )
    last = torchrun(WORKER, path, tmp_path / "killed")
    output, _ = last.communicate()
    assert last.returncode == 0, output
    expected, found = (
        weights(tmp_path / name / "model.safetensors") for name in ("whole", "killed")
    )
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-6)
