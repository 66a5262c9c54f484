"""``zoo check --plan``; test_verbs tests the rest of the command."""

import json

import pytest
from typer.testing import CliRunner

from zoo.cli.main import app
from zoo.errors import ZooError


def _run(*arguments):
    done = CliRunner().invoke(app, ["check", "gpt2-tiny", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_plan_is_printed():
    text = _run("--plan", "fsdp:2", "--batch", "2x8")
    assert "gpt2-tiny, fsdp:2: each of 2 devices, batch 2x8 (option)" in text
    assert "optimiser adamw (default), precision float32 (default)" in text
    parts = [line.split("  ")[0] for line in text.splitlines()]
    for part in ("weights", "gradients", "optimiser", "activations", "gathered weights", "total"):
        assert part in parts
    assert "reduce-scatter: " in text


def test_the_plan_is_printed_as_json():
    report = json.loads(_run("--plan", "ddp:4", "--batch", "2x8", "--json"))
    assert report["ok"] is True
    plan = report["plan"]
    assert plan["devices"] == 4
    assert plan["total"] == sum(plan["at_peak"].values())
    assert plan["communication"] == {"all-reduce": 2 * 3 * 4 * report["parameters"] // 4}
    assert "plan" not in json.loads(_run("--json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plan", "fsdp"], "'fsdp' is not a plan; expected 'single'"),
        (["--plan", "single", "--batch", "8"], "'8' is not a batch; expected ITEMSxLENGTH"),
        (["--batch", "8x8"], "--batch is an option of --plan; add, for example, --plan single"),
    ],
)
def test_wrong_options(arguments, message):
    done = CliRunner().invoke(app, ["check", "gpt2-tiny", *arguments])
    assert isinstance(done.exception, ZooError)
    assert message in str(done.exception)
