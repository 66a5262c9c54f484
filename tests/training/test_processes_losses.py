"""Training in two processes on the CPU, started by torchrun."""

import json

import pytest
import torch
from training_kit import ROOT, make_spec, read_log, torchrun, weights

import zoo

SETTINGS = {
    "steps": 10,
    "batch": {"items": 7},  # shares of different sizes
    "log": {"every": 1},
    "clip": 1.0,
    "evaluate": {"every": 10},
    "average": {"ema": 0.9},
    "schedule": {"type": "inverse-sqrt", "warmup": 3},
}


FROZEN = {
    "average": None,
    "validation": None,
    "evaluate": None,
    "freeze": ["source", "encoder", "decoder.blocks.0.attention"],
    "unfreeze": [{"at": 3, "match": ["encoder"]}],
    "groups": [{"match": ["decoder.blocks.0.feed_forward"], "lr_factor": 0.1}],
    "checkpointing": True,
}


@pytest.fixture(scope="module")
def job(files, tmp_path_factory):
    """The folder of the results of a job whose main process kills itself at the end."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "settings.json").write_text(json.dumps(SETTINGS))
    (folder / "frozen.json").write_text(json.dumps(FROZEN))
    job = torchrun(ROOT / "tests" / "kits" / "training_worker.py", files, folder)
    output, _ = job.communicate(timeout=300)
    (folder / "output.txt").write_text(output)
    zoo.train(make_spec(files, **SETTINGS), output=folder / "one", device="cpu")
    frozen = make_spec(files, **{**SETTINGS, **FROZEN, "steps": 8})
    zoo.train(frozen, output=folder / "frozen", device="cpu")
    return folder


def _losses(folder):
    return [entry.get("loss", entry.get("validation_loss")) for entry in read_log(folder)]


def _train_losses(folder):
    return [entry["loss"] for entry in read_log(folder) if "loss" in entry]


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_two_processes_follow_the_losses_of_one(job, parallel):
    expected, losses = _losses(job / "one"), _losses(job / parallel)
    assert len(losses) == 11
    assert losses == pytest.approx(expected, abs=1e-4)


def test_fsdp_shards_all_parameters(job):
    ddp, fsdp, *_ = json.loads((job / "sharding.json").read_text())
    assert ddp["sharded"] == 0
    assert ddp["local"] == ddp["all"]
    assert fsdp["sharded"] == fsdp["parameters"]
    assert fsdp["local"] == pytest.approx(fsdp["all"] / 2, rel=0.1)


def test_a_resumed_run_of_two_processes_equals_an_uninterrupted_one(job):
    expected, resumed = (weights(job / name / "model.safetensors") for name in ("ddp", "resumed"))
    for name, tensor in expected.items():
        torch.testing.assert_close(resumed[name], tensor, rtol=0, atol=1e-6)


def test_a_run_continues_sharded_and_unsharded(job):
    expected, resumed = (_train_losses(job / name) for name in ("one", "resharded"))
    assert resumed == pytest.approx(expected[:9], abs=1e-4)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_frozen_parts_train_in_two_processes_as_in_one(job, parallel):
    expected, losses = (_train_losses(job / name) for name in ("frozen", f"frozen-{parallel}"))
    assert losses == pytest.approx(expected, abs=1e-5)
    one, found = (
        weights(job / name / "model.safetensors") for name in ("frozen", f"frozen-{parallel}")
    )
    for name, tensor in one.items():
        if not name.endswith("key.bias"):  # its gradient is 0 but for rounding errors
            torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-6)


def test_a_killed_process_ends_the_job_with_a_message(job):
    output = (job / "output.txt").read_text()
    assert "process 1 of 2 has lost the connection to another process" in output
    assert "SIGKILL" in output
