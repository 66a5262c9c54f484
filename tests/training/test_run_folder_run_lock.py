"""One process, or one group of processes, trains in a run folder at a time."""

import contextlib
import os
import time

import psutil
import pytest
from lock_kit import lock_in_process
from train_command_kit import run_zoo, start_zoo, write_spec
from training_kit import ROOT, make_spec, torchrun

from zoo import ZooError
from zoo.training.run_folder import LOCK_FILE, lock_folder


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of the folder ``run``."""
    with lock_in_process(tmp_path / "run") as process:
        yield process


def test_the_second_is_rejected_and_a_killed_process_leaves_no_lock(holder, tmp_path):
    folder = tmp_path / "run"
    message = f"{folder} is in use by process {holder.pid} on .*; wait until it ends, or use"
    with pytest.raises(ZooError, match=message), lock_folder(folder):
        pass
    holder.kill()
    holder.wait()
    assert (folder / LOCK_FILE).exists()
    with lock_folder(folder):
        assert f"process {os.getpid()} on" in (folder / LOCK_FILE).read_text()
    assert not (folder / LOCK_FILE).exists()


@pytest.mark.slow
def test_two_trainings_in_a_folder(files, tmp_path):
    spec = make_spec(files, validation=None, steps=10**6, log={"every": 1}, workers=1)
    train = ("train", write_spec(tmp_path, spec), "--device", "cpu", "-o", tmp_path / "run")
    (tmp_path / "second").mkdir()
    first = start_zoo(tmp_path, *train)
    while not (tmp_path / "run" / "log.jsonl").exists():
        time.sleep(0.05)
        assert first.exitcode is None
    code, _, errors = run_zoo(tmp_path / "second", *train, "--resume")
    assert code == 1
    assert f"is in use by process {first.pid} on " in errors
    assert errors.count("\n") == 1
    workers = psutil.Process(first.pid).children(recursive=True)
    first.kill()
    first.join()
    # A process that reads data ends some seconds after its parent, and does not hold the lock.
    code, _, errors = run_zoo(tmp_path, *train, "--resume", "--set", "train.steps=1")
    assert code == 0, errors
    for worker in workers:
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.kill()


@pytest.mark.slow
def test_a_group_of_processes_is_rejected(files, tmp_path, holder):
    spec = write_spec(tmp_path, make_spec(files, validation=None, steps=2))
    worker = ROOT / "tests" / "kits" / "zoo_worker.py"
    job = torchrun(worker, "train", spec, "-o", tmp_path / "run")
    output, _ = job.communicate()
    assert job.returncode != 0
    assert f"is in use by process {holder.pid}" in output
    assert not (tmp_path / "run" / "log.jsonl").exists()


def test_something_else_with_the_name_of_the_lock_is_rejected(tmp_path):
    os.mkfifo(tmp_path / LOCK_FILE)
    with pytest.raises(ZooError, match="is a named pipe, not a regular file"):
        lock_folder(tmp_path).__enter__()
