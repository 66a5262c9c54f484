"""Artifacts written before component parameters were renamed still load and verify.

`tests/data/artifacts/` holds one artifact for each small shipped spec, written by version 0.1.0 at
format 2 before the renaming. Each stores a probe: an input, and outputs computed at that time.
"""

from pathlib import Path

import pytest

import zoo

FILES = sorted((Path(__file__).parents[1] / "data" / "artifacts").glob("*.safetensors"))


def test_every_file_is_collected():
    assert len(FILES) == 27


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::zoo.errors.ZooWarning")
def test_an_older_artifact_loads_and_reproduces_its_outputs(path):
    report = zoo.verify(path)
    assert report.ok, report
    assert report.checks[-1].status == "ok", report  # the probe


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::zoo.errors.ZooWarning")
def test_an_older_artifact_survives_another_save(path, tmp_path):
    zoo.save(zoo.load(path), tmp_path / "again.safetensors")
    assert zoo.verify(tmp_path / "again.safetensors").ok
