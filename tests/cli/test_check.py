"""The attention paths that ``zoo check`` prints; test_verbs tests the rest of the command."""

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
    text = " ".join(_run("--set", "model.decoder.attention.align=sparsemax").split())
    reason = "alignment 'sparsemax' is not known as a softmax"
    assert f"inner-product-attention decoder.blocks.*.attention: reference path ({reason})" in text
