"""A training run without a model yet."""

import shutil

import pytest
from training_kit import make_spec, write_files

import zoo


@pytest.fixture
def run(tmp_path):
    """The folder of a run that was stopped after its last checkpoint."""
    write_files(tmp_path)
    spec = make_spec(tmp_path, steps=4, checkpoints={"every": 2, "last": 2})
    zoo.train(spec, output=tmp_path / "run", device="cpu")
    (tmp_path / "run" / "model.safetensors").unlink()
    return tmp_path / "run"


def test_the_newest_checkpoint_is_named_and_loads(run):
    newest = run / "checkpoints" / "step-00000004"
    message = rf"{run} has no model yet.*newest checkpoint, {newest}, or continue with zoo train"
    with pytest.raises(zoo.ArtifactError, match=message):
        zoo.load(run)
    assert zoo.load(newest).spec["name"]
    assert zoo.evaluate(newest, device="cpu").values["loss"] > 0


def test_a_folder_without_checkpoints_has_no_model(run):
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(zoo.ArtifactError, match="is a directory without a model"):
        zoo.load(run)
