"""``zoo train`` in a process of its own: signals and a full disk."""

import os
import signal
import subprocess
import sys

import psutil
import pytest
from train_command_kit import run_zoo, start_zoo, write_spec
from training_kit import assert_equal_weights, make_spec, read_log, set_dropout

import zoo
from zoo.training.interruption import Signals, raise_on_termination


def _wait_for(path, process, lines=1):
    """Wait until a process has written lines to a file."""
    while not (path.exists() and path.read_bytes().count(b"\n") >= lines):
        process.join(0.05)
        assert process.exitcode is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "name", "send", "workers"),
    [
        (signal.SIGTERM, 143, "SIGTERM", os.kill, 0),
        (signal.SIGINT, 130, "Ctrl-C", os.kill, 0),
        (signal.SIGHUP, 129, "SIGHUP", os.killpg, 2),
        (signal.SIGTERM, 143, "SIGTERM", os.killpg, 2),
    ],
)
def test_a_signal_ends_the_process_with_a_checkpoint(
    files, tmp_path, number, code, name, send, workers
):
    train = make_spec(files, validation=None, steps=10**6, log={"every": 1}, workers=workers)
    spec = write_spec(tmp_path, train)
    train = ("train", spec, "--device", "cpu", "-o")
    process = start_zoo(tmp_path, *train, "run")
    _wait_for(tmp_path / "run" / "log.jsonl", process)
    send(process.pid, number)
    process.join()
    assert process.exitcode == code
    (checkpoint,) = (tmp_path / "run" / "checkpoints").iterdir()
    step = int(checkpoint.name.removeprefix("step-"))
    assert (tmp_path / "errors.txt").read_text() == (
        f"{name}: training stopped at step {step}; continue from run/checkpoints/"
        f"{checkpoint.name} with --resume\n"
    )
    steps = ("--set", f"train.steps={step + 2}")
    result, output, errors = run_zoo(tmp_path, *train, "run", "--resume", *steps)
    assert result == 0, errors
    assert f"resumed at step {step:,}\n" in output
    assert [entry["step"] for entry in read_log(tmp_path / "run")] == list(range(1, step + 3))


PARTS = {
    "frozen": {
        "train": {
            "freeze": ["source", "encoder"],
            "unfreeze": [{"at": 5, "match": ["encoder"]}],
            "groups": [{"match": ["decoder.blocks.0.attention"], "lr_factor": 0.5}],
        }
    },
    "adapters": {
        "adapters": {"style": {"type": "lora", "rank": 2, "dropout": 0.1, "targets": ["*.query"]}}
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("parts", PARTS)
def test_a_killed_process_with_frozen_parts_or_adapters_continues_bit_for_bit(
    files, tmp_path, parts
):
    changes = PARTS[parts]
    base = {key: value for key, value in make_spec(files).items() if key != "train"}
    start = {"weights": str(zoo.save(zoo.compose(base, seed=1), tmp_path / "base.safetensors"))}
    settings = {"log": {"every": 1}, "checkpoints": {"every": 2}, "start": start}
    train = make_spec(files, validation=None, steps=10**6, **settings, **changes.get("train", {}))
    spec = write_spec(tmp_path, set_dropout({**changes, **train}, 0.1))
    train = ("train", spec, "--device", "cpu", "-o")
    process = start_zoo(tmp_path, *train, "killed")
    _wait_for(tmp_path / "killed" / "log.jsonl", process, lines=4)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    step = max(int(path.name[5:]) for path in (tmp_path / "killed" / "checkpoints").glob("step-*"))
    steps = ("--set", f"train.steps={step + 4}")
    for name in ("whole", "killed"):
        code, output, errors = run_zoo(tmp_path, *train, name, "--resume", *steps)
        assert code == 0, errors
        assert (f"resumed at step {step:,}\n" in output) == (name == "killed")
    last = f"checkpoints/step-{step + 4:08d}/optimiser.safetensors"
    for file in ("model.safetensors", last):
        assert_equal_weights(*(tmp_path / name / file for name in ("whole", "killed")))
    assert read_log(tmp_path / "whole") == read_log(tmp_path / "killed")


@pytest.mark.slow
def test_a_killed_worker_ends_the_process_with_a_checkpoint(files, tmp_path):
    train = make_spec(files, validation=None, steps=10**6, log={"every": 1}, workers=1)
    train = ("train", write_spec(tmp_path, train), "--device", "cpu", "-o", "run")
    process = start_zoo(tmp_path, *train)
    _wait_for(tmp_path / "run" / "log.jsonl", process)
    for child in psutil.Process(process.pid).children(recursive=True):
        if not child.children() and "resource_tracker" not in " ".join(child.cmdline()):
            child.kill()
    process.join()
    assert process.exitcode == 1
    (checkpoint,) = (tmp_path / "run" / "checkpoints").iterdir()
    step = int(checkpoint.name.removeprefix("step-"))
    assert (tmp_path / "errors.txt").read_text() == (
        f"a process that reads data was killed: training stopped at step {step}; continue from "
        f"run/checkpoints/{checkpoint.name} with --resume\n"
    )
    steps = [entry["step"] for entry in read_log(tmp_path / "run")]
    assert steps == list(range(1, step + 1))
    code, output, errors = run_zoo(tmp_path, *train, "--resume", "--set", f"train.steps={step + 2}")
    assert code == 0, errors
    assert f"resumed at step {step:,}\n" in output


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_a_signal_that_the_process_was_started_to_ignore_stays_ignored():
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with Signals() as signals, raise_on_termination():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signals.received is None
    finally:
        signal.signal(signal.SIGHUP, previous)


@pytest.fixture
def disk(tmp_path):
    """A folder in which a file system of a size can be mounted, again with another size."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(size, *options):
        settings = ",".join([*options, f"size={size}"])
        command = ["mount", "-t", "tmpfs", "-o", settings, "tmpfs", str(folder)]
        if sys.platform != "linux" or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("a file system can be mounted only on Linux with the rights of root")

    yield mount
    subprocess.run(["umount", str(folder)], capture_output=True)


@pytest.mark.slow
def test_a_full_disk_ends_the_process_with_the_last_checkpoint_whole(files, tmp_path, disk):
    spec = make_spec(files, validation=None, steps=6, checkpoints={"every": 2, "last": 9})
    train = ("train", write_spec(tmp_path, spec), "--device", "cpu", "-o")
    full = "could not be written: the disk is full (no space left on device);"
    disk("4k")  # a page, which the file of the lock takes
    code, _, errors = run_zoo(tmp_path, *train, "disk/first")
    assert (code, errors) == (1, f"disk/first/spec.yaml {full} there is no checkpoint yet\n")
    disk("8k", "remount")
    code, _, errors = run_zoo(tmp_path, *train, "disk/first", "--set", "train.log.every=1")
    assert (code, errors) == (1, f"disk/first/log.jsonl {full} there is no checkpoint yet\n")
    disk("320k", "remount")
    code, _, errors = run_zoo(tmp_path, *train, "disk/run")
    folder = "disk/run/checkpoints"
    message = f"{folder}/step-00000006 {full} continue from {folder}/step-00000004 with --resume\n"
    assert (code, errors) == (1, message)
    disk("4m", "remount")
    code, output, errors = run_zoo(tmp_path, *train, "disk/run", "--resume")
    assert code == 0, errors
    assert "resumed at step 4\n" in output
