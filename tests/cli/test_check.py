"""The attention paths that ``zoo check`` prints; test_verbs tests the rest of the command."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app


def _run(*arguments):
    done = CliRunner().invoke(app, ["check", "gpt2-tiny", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_path_of_each_attention_is_printed():
    pytest.importorskip("zoo_fast", reason="the fast lane is not installed")
    text = " ".join(_run().split())
    assert "inner-product-attention decoder.blocks.*.attention: accelerated" in text
    assert "cpu-block decoder.blocks.*: accelerated; in training: reference path" in text
    assert text.count("reference path") == 1  # that of an evaluation is not printed
    changed = ("--set", "model.decoder.attention.align=sparsemax")
    text = " ".join(_run(*changed, "--verbose").split())
    reason = "alignment 'sparsemax' is not known as a softmax"
    assert f"inner-product-attention decoder.blocks.*.attention: reference path ({reason})" in text


def test_a_file_that_cannot_be_read_is_reported_without_importing_torch(tmp_path):
    (tmp_path / "bad.yaml").write_text("zoo: [1", encoding="utf-8")
    code = "import sys; from zoo.cli.main import main; sys.argv[0] = 'zoo'\n"
    code += "try: main()\nfinally: assert 'torch' not in sys.modules"
    for name, message in (("none.yaml", "no such file"), ("bad.yaml", "invalid YAML")):
        command = [sys.executable, "-c", code, "check", name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert message in done.stderr
        assert "AssertionError" not in done.stderr


def test_the_parts_of_a_saved_model_are_printed(tmp_path):
    adapters = ["adapters={extra: {type: lora, targets: ['*.query'], rank: 2}}"]
    path = zoo.save(zoo.compose("gpt2-tiny", overrides=adapters), tmp_path / "model.safetensors")
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 0, done.output
    spec = CliRunner().invoke(app, ["check", "gpt2-tiny", "--set", adapters[0]]).output
    tree = spec.partition("B batch")[0]
    assert tree in done.output
    assert "\ntrained: 128 parameters; frozen: 5,488\n" in done.output
    printed = CliRunner().invoke(app, ["check", str(path), "--json"]).output
    assert json.loads(printed)["trained"]["parameters"] == 128


def test_options_of_specs_are_not_for_saved_models(tmp_path):
    path = zoo.save(zoo.compose("gpt2-tiny"), tmp_path / "model.safetensors")
    done = CliRunner().invoke(app, ["check", str(path), "--set", "model.bos=1"])
    assert done.exit_code != 0
    assert "is a model with weights; --set and --from are for specs" in str(done.exception)
