"""``zoo diff``: what it prints, and its exit codes."""

import json
import re

import pytest
from typer.testing import CliRunner

from zoo.cli.main import app


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["diff", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.safetensors"
    CliRunner().invoke(app, ["compose", "bahdanau-reversal", "-o", str(path)])
    return path


def test_equal_models_exit_with_0(model):
    text = run(model, "bahdanau-reversal").stdout
    assert text.endswith("\nequal\n")
    assert "settings: equal" in text
    assert "tensors: 23 equal\n" in text
    assert "tensors: 23 equal (23 by hash)" in run(model, model).stdout


def test_different_models_exit_with_1_and_print_json(model, tmp_path):
    other = tmp_path / "other.safetensors"
    CliRunner().invoke(app, ["compose", "bahdanau-reversal", "-o", str(other), "--seed", "1"])
    text = run(model, other, code=1).stdout
    assert text.endswith("\ndifferent\n")
    assert "tensors: 0 equal, 23 differ" in text
    found = json.loads(run(model, other, "--json", code=1).stdout)
    assert found["equal"] is False
    assert found["a"] == {"name": str(model), "kind": "model"}
    assert len(found["tensors"]["changed"]) == 23
    assert found["outputs"]["outputs"][0]["max_difference"] > 0


def test_specs_print_the_line_of_each_value():
    text = run("bahdanau-2015", "bahdanau-small", "--only", "settings", code=1).stdout
    assert "model.encoder.hidden" in text
    assert re.search(r"1000  \(\S*bahdanau-2015.yaml:8\)", text)
    assert "tensors" not in text


def test_what_cannot_be_compared_exits_with_2(model, tmp_path):
    done = run(model, tmp_path / "none.safetensors", code=2)
    assert done.stdout == ""
    assert done.stderr == f"{tmp_path}/none.safetensors: no such file\n"
    assert "device 'gpu7' is unknown" in run(model, model, "--device", "gpu7", code=2).stderr
