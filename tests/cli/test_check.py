"""The attention paths that ``zoo check`` prints; test_verbs tests the rest of the command."""

import torch
from typer.testing import CliRunner

from zoo.cli.main import app


def _run(*arguments):
    done = CliRunner().invoke(app, ["check", "gpt2-tiny", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_path_of_each_attention_is_printed():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    path = "model.decoder.attention"
    assert f"attention  {path}: fused path, on {device}" in " ".join(_run().split("\n"))
    text = " ".join(_run("--set", f"{path}.align=sparsemax").split())
    reason = "alignment 'sparsemax' is not a softmax"
    assert f"attention {path}: reference path ({reason}), on {device}" in text
