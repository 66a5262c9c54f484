"""Training of adapters: only they change, and a resumed run equals an uninterrupted one."""

import json

import pytest
import torch
from training_kit import (
    ROOT,
    assert_equal_weights,
    make_spec,
    read_log,
    torchrun,
    weights,
    write_files,
)

import zoo

ADAPTERS = {
    "style": {"type": "lora", "rank": 2, "dropout": 0.1, "targets": ["*.{query,value}"]},
    "size": {"type": "dora", "rank": 2, "targets": ["*.feed_forward.up"]},
    "head": {"type": "module-copy", "targets": ["*.feed_forward_norm"]},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("texts"))


def _spec(files, adapters=ADAPTERS, **train):
    return {**make_spec(files, **{"steps": 6, "log": {"every": 1}, **train}), "adapters": adapters}


def test_only_adapters_are_trained_and_in_the_state_of_the_optimiser(files, tmp_path):
    spec = _spec(files)
    zoo.train(spec, output=tmp_path, device="cpu")
    before = zoo.compose(spec).state_dict()
    trained = weights(tmp_path / "model.safetensors")
    changed = {name for name in trained if not torch.equal(trained[name], before[name])}
    assert changed
    assert changed <= {name for name in trained if name.startswith("adapters.")}
    (checkpoint,) = (tmp_path / "checkpoints").iterdir()
    state = weights(checkpoint / "optimiser.safetensors")
    moments = [name for name in state if name.startswith("optimiser/exp_avg/")]
    assert moments
    assert all(name.startswith("optimiser/exp_avg/adapters.") for name in moments)


def test_a_resumed_run_equals_an_uninterrupted_one(files, tmp_path):
    zoo.train(_spec(files), output=tmp_path / "whole", device="cpu")
    zoo.train(_spec(files, steps=3), output=tmp_path / "resumed", device="cpu")
    zoo.train(_spec(files), output=tmp_path / "resumed", device="cpu", resume=True)
    assert_equal_weights(*(tmp_path / run / "model.safetensors" for run in ("whole", "resumed")))


def test_a_run_that_started_from_a_base_saves_the_adapter_without_it(files, tmp_path, monkeypatch):
    import zoo.training.setup as setup

    spec = _spec(files)
    base = tmp_path / "base.safetensors"
    plain = {key: value for key, value in spec.items() if key != "adapters"}
    zoo.save(zoo.compose(plain, seed=0), base)
    build = setup.build_model

    def from_base(*arguments):
        model = build(*arguments)
        model.base = str(base)
        return model

    monkeypatch.setattr(setup, "build_model", from_base)
    zoo.train(spec, output=tmp_path / "run", device="cpu")
    stored = weights(tmp_path / "run" / "model.safetensors")
    assert all(name.startswith("adapters.") for name in stored)
    model = zoo.load(tmp_path / "run")
    torch.testing.assert_close(
        model.state_dict()["source.table.weight"], weights(base)["source.table.weight"]
    )


@pytest.mark.slow
def test_two_processes_follow_the_losses_of_one(files, tmp_path):
    settings = {"steps": 6, "log": {"every": 1}, "batch": {"items": 7}}
    adapters = {name: {**part, "dropout": 0.0} for name, part in ADAPTERS.items() if name != "head"}
    text = json.dumps({"train": settings, "adapters": adapters})
    (tmp_path / "settings.json").write_text(text)
    job = torchrun(ROOT / "tests" / "kits" / "adapter_worker.py", files, tmp_path)
    output, _ = job.communicate(timeout=300)
    zoo.train(_spec(files, adapters, **settings), output=tmp_path / "one", device="cpu")
    expected = [entry["loss"] for entry in read_log(tmp_path / "one") if "loss" in entry]
    for name in ("ddp", "fsdp"):
        assert (tmp_path / name / "model.safetensors").exists(), output
        losses = [entry["loss"] for entry in read_log(tmp_path / name) if "loss" in entry]
        assert losses == pytest.approx(expected, rel=1e-6)
