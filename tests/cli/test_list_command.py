import pytest
from typer.testing import CliRunner

from zoo.cli.main import app


def run(*arguments):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.output


def test_accelerations_are_shown_with_the_methods_they_replace():
    pytest.importorskip("zoo_fast", reason="the fast lane is not installed")
    text = " ".join(run("show", "fused-decoding").split())
    assert "TransformerDecoder.start, TransformerDecoder.step of " in text
    assert "of zoo_transformer.transformer_decoder " in text
    header, *lines = run("list", "--kind", "acceleration").splitlines()
    assert header.split() == ["kind", "name", "plugin", "serves", "summary"]
    (line,) = (line for line in lines if " token-lookup " in line)
    assert " Token.lookup " in line
    assert "serves" not in run("list").splitlines()[0]
