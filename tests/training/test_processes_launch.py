"""Processes that a launcher started together form a group, or the run does not start."""

import json

import pytest
from train_command_kit import write_spec
from training_kit import ROOT, make_spec, read_log, torchrun

import zoo
from zoo import ZooError
from zoo.training.processes import check_group

WORKER = ROOT / "tests" / "kits" / "zoo_worker.py"
VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.mark.slow
def test_processes_without_a_gpu_form_a_group(files, tmp_path):
    settings = {"validation": None, "log": {"every": 1}, "checkpoints": {"every": 1, "last": 9}}
    spec = write_spec(tmp_path, make_spec(files, steps=3, **settings))
    job = torchrun(WORKER, "train", spec, "-o", tmp_path / "run")
    output, _ = job.communicate()
    assert job.returncode == 0, output
    assert "2 x CPU (DDP)" in output
    assert [entry["step"] for entry in read_log(tmp_path / "run")] == [1, 2, 3]
    for path in (tmp_path / "run" / "checkpoints").iterdir():
        assert zoo.load(path / "model.safetensors", verify=True)
        assert json.loads((path / "state.json").read_text())["world"] == 2


@pytest.mark.parametrize("names", [("RANK",), ("LOCAL_RANK",), ("RANK", "LOCAL_RANK")])
def test_a_rank_alone_changes_nothing(files, tmp_path, monkeypatch, names):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in names:
        monkeypatch.setenv(name, "1")
    spec = make_spec(files, steps=1, validation=None)
    result = zoo.train(spec, output=tmp_path / "run")
    assert zoo.load(result.path)
    assert zoo.load(next((tmp_path / "run" / "checkpoints").iterdir()) / "model.safetensors")


@pytest.mark.parametrize("names", [(), ("RANK",), ("RANK", "MASTER_ADDR")])
def test_a_group_that_is_not_described_is_an_error(files, tmp_path, monkeypatch, names):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in names:
        monkeypatch.setenv(name, "1")
    with pytest.raises(ZooError, match=r"WORLD_SIZE is 2, but .*MASTER_PORT .*cannot form a group"):
        zoo.train(make_spec(files, steps=1), output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_processes_outside_of_a_group_are_an_error(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    check_group(2)
    with pytest.raises(ZooError, match="2 processes were started together, but they do not form"):
        check_group(1)
