"""``zoo reproduce``."""

import json
import os
import signal

from typer.testing import CliRunner

from zoo.cli.main import app
from zoo.cli.training_progress import TrainingProgress


def _run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *arguments])


def test_recipes_are_run_and_a_failed_one_stops_nothing(recipe_folder):
    (recipe_folder / "bad.yaml").write_text("zoo: 1\nname: bad\n")
    options = ["--data", "data", "-o", "out", "--seed", "3", "--set", "spec.train.steps=1"]
    done = _run("bad.yaml", "letters.yaml", *options, "--device", "cpu", "--json")
    assert done.exit_code == 1
    assert "bad.yaml:1:1: key 'description' is missing" in done.stderr
    (result,) = json.loads(done.stdout)
    assert result["seeds"][0]["command"] == (
        "zoo reproduce bad.yaml letters.yaml --seed 3 --set spec.train.steps=1"
    )
    os.environ["ZOO_DATA"] = ""
    again = _run("letters.yaml", *options)
    assert again.exit_code == 0
    assert "at most 100 % error" in again.stdout
    assert "validation/loss" in again.stdout


def test_missing_data_and_missing_names_are_errors(recipe_folder):
    assert _run().exit_code == 2
    done = _run("letters.yaml", "-o", "out")
    assert done.exit_code == 1
    assert "letters: the environment variable ZOO_DATA is not set" in done.stderr


def test_the_list_has_data_and_targets(recipe_folder):
    done = _run("letters.yaml", "--list")
    assert done.exit_code == 0
    assert "letters (missing)" in done.stdout
    assert "at most 100 % error; at least 50" in done.stdout


def test_a_signal_stops_the_run_until_the_same_command(recipe_folder, monkeypatch):
    def stop(callback, step):
        signal.raise_signal(signal.SIGTERM)

    command = ["letters.yaml", "--data", "data", "--seed", "3", "--device", "cpu", "-o", "out"]
    with monkeypatch.context() as patch:
        patch.setattr(TrainingProgress, "on_step", stop)
        stopped = _run(*command)
    assert stopped.exit_code == 143
    assert "letters: stopped, and a checkpoint was saved; run the same command" in stopped.stderr
    done = _run(*command)
    assert done.exit_code == 0
    assert "resumed at step" in done.stderr
