"""What ``zoo info`` prints of an imported model."""

import json

from typer.testing import CliRunner

import zoo
from zoo.cli.main import app

NAMES = {f"layer.{n}.weight": f"layers.{n}.weight" for n in range(100)}


def _info(path, *options):
    done = CliRunner().invoke(app, ["info", str(path), *options])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_names_of_the_original_tensors_are_counted(tmp_path):
    provenance = {"imported": "folder", "originals": {"names": NAMES, "absent": ["a", "b"]}}
    model = zoo.compose("gpt2-tiny")
    path = zoo.save(model, tmp_path / "model.safetensors", provenance=provenance)
    shown = _info(path)
    assert "names: 100 entries (--verbose prints them)" in shown
    assert "absent: 2 entries (--verbose prints them)" in shown
    assert "layer.7.weight" not in shown
    assert shown.index("spec:") < shown.index("providers:") < shown.index("provenance:")
    assert "layer.7.weight: layers.7.weight" in _info(path, "--verbose")
    assert json.loads(_info(path, "--json"))["provenance"]["originals"]["names"] == NAMES
