"""``zoo train``."""

import json
import os
import signal

import pytest
import yaml
from training_kit import make_spec, write_files
from typer.testing import CliRunner

from zoo.cli.main import app
from zoo.cli.training_progress import TrainingProgress


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(make_spec(write_files(tmp_path), steps=6, log={"every": 3})))
    return path


def _run(*arguments, code=0):
    done = CliRunner().invoke(app, ["train", *map(str, arguments), "--device", "cpu"])
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def test_lines_of_the_log_and_the_result_are_printed(spec, tmp_path):
    lines = _run(spec, "-o", tmp_path / "run").splitlines()
    assert lines[0].startswith("tiny-reversal: ")
    assert lines[0].endswith("60 examples, 8 updates per epoch; 6 steps on CPU")
    assert lines[1].startswith("step 3/6  loss ")
    assert "left" in lines[1]
    assert lines[-3].startswith("best loss: ")
    assert lines[-2] == f"model: {tmp_path / 'run' / 'model.safetensors'}; log: " + str(
        tmp_path / "run" / "log.jsonl"
    )


def test_quiet_prints_nothing_and_the_folder_has_the_name_of_the_spec(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert _run(spec, "--quiet") == ""
    assert (tmp_path / "runs" / "tiny-reversal" / "model.safetensors").is_file()


def test_json_is_the_result(spec, tmp_path):
    done = CliRunner().invoke(app, ["train", str(spec), "-o", str(tmp_path / "run"), "--json"])
    result = json.loads(done.stdout)
    assert result["step"] == 6
    assert result["path"] == str(tmp_path / "run" / "model.safetensors")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_exit_code_of_a_signal(spec, tmp_path, monkeypatch, number, code):
    def send(self, step):
        if step == 1:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(TrainingProgress, "on_step", send)
    output = _run(spec, "-o", tmp_path / "run", code=code)
    assert "training stopped at step 2; continue from" in output


def test_fsdp_needs_several_processes(spec, tmp_path):
    done = CliRunner().invoke(
        app, ["train", str(spec), "-o", str(tmp_path / "run"), "--parallel", "fsdp"]
    )
    assert "parallel is 'fsdp', but there is one process" in str(done.exception)


def test_an_invalid_device_is_rejected_before_anything_is_written(spec, tmp_path):
    done = CliRunner().invoke(
        app, ["train", str(spec), "-o", str(tmp_path / "run"), "--device", "gpu9"]
    )
    assert str(done.exception) == "device 'gpu9' is unknown; did you mean 'cuda'?"
    assert not (tmp_path / "run").exists()
