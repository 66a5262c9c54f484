"""``zoo test-plugin``: the device of the laws."""

import json

from typer.testing import CliRunner

from zoo.cli.main import app


def test_laws_run_on_the_device_that_is_named():
    done = CliRunner().invoke(app, ["test-plugin", "alignment", "--device", "meta", "--json"])
    assert done.exit_code == 1
    messages = [each["message"] for each in json.loads(done.stdout)["outcomes"]]
    assert any("meta tensors" in message for message in messages)


def test_an_unknown_device_is_reported():
    done = CliRunner().invoke(app, ["test-plugin", "alignment", "--device", "nowhere"])
    assert "device 'nowhere' is unknown" in str(done.exception)
