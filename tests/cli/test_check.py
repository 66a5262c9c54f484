"""The attention paths that ``zoo check`` prints; test_verbs tests the rest of the command."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

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
