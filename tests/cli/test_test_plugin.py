"""``zoo test-plugin``: the device of the laws."""

import json

from typer.testing import CliRunner

from zoo.cli.main import app


def test_laws_run_on_the_device_that_is_named():
    done = CliRunner().invoke(app, ["test-plugin", "alignment", "--device", "meta", "--json"])
    assert done.exit_code == 1
    messages = [each["message"] for each in json.loads(done.stdout)["outcomes"]]
    assert any("meta tensors" in message for message in messages)


def _outcomes(*arguments):
    done = CliRunner().invoke(app, ["test-plugin", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["outcomes"]


def test_one_component_and_one_law():
    outcomes = _outcomes("additive", "--law", "gradients")
    assert {(each["component"], each["law"]) for each in outcomes} == {("additive", "gradients")}
    outcomes = _outcomes("alignment:soft", "--law", "documented")
    assert {(each["component"], each["law"]) for each in outcomes} == {("soft", "documented")}
    outcomes = _outcomes("gpt2", "--law", "documented", "--law", "valid-spec")
    assert [each["law"] for each in outcomes] == ["documented", "valid-spec"]


def test_unknown_names_and_laws_get_a_suggestion():
    done = CliRunner().invoke(app, ["test-plugin", "aditive"])
    assert "named 'aditive' is installed; did you mean 'additive'?" in str(done.exception)
    done = CliRunner().invoke(app, ["test-plugin", "additive", "--law", "gradient"])
    assert "no law named 'gradient'; did you mean 'gradients'?" in str(done.exception)


def test_an_unknown_device_is_reported():
    done = CliRunner().invoke(app, ["test-plugin", "alignment", "--device", "nowhere"])
    assert "device 'nowhere' is unknown" in str(done.exception)
