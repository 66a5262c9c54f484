"""The folder of a run that saves nothing."""

import pytest
from training_kit import make_spec

import zoo
from zoo import ZooError


def _fail(files, run):
    missing = str(files / "missing.txt")
    data = {"type": "parallel-text", "source": missing, "target": missing}
    with pytest.raises(ZooError, match="no such file"):
        zoo.train(make_spec(files, data=data), output=run, device="cpu")


def test_a_run_that_fails_before_its_first_step_leaves_no_folder(files, tmp_path):
    run = tmp_path / "run"
    _fail(files, run)
    assert not run.exists()


def test_a_folder_that_was_there_is_kept(files, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    _fail(files, run)
    assert list(run.iterdir()) == []
    (run / "notes.txt").write_text("mine")
    _fail(files, run)
    assert [path.name for path in run.iterdir()] == ["notes.txt"]
