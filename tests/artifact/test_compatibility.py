"""Artifacts written by earlier versions load and give the same outputs.

`tests/recorded/artifacts/` contains one artifact of format 2 for each small shipped spec, written
before component parameters were renamed. Each stores a probe: an input, and the outputs computed
then. `format-1/` contains files of the first format, written by the code of that time; they have
no probe, so their outputs are given here.
"""

from pathlib import Path

import pytest
import torch

import zoo
from zoo.artifact import read_header

FOLDER = Path(__file__).parents[1] / "recorded" / "artifacts"
FILES = sorted(FOLDER.glob("*.safetensors"))
FORMAT_1 = {
    "gpt2-tiny": (
        {"target": [[26, 30, 25, 9, 14, 14], [12, 12, 30, 13, 9, 10]]},
        [0.0, -0.08169304579496384, -0.11197053641080856, -0.014880736358463764],
        1.3246985835173906,
    ),
    "transformer-tiny": (
        {
            "source": [[10, 2, 13, 17, 7], [19, 22, 14, 3, 11]],
            "target": [[18, 2, 2, 18, 23, 21, 22], [16, 20, 14, 22, 23, 10, 22]],
        },
        [0.0, 0.6183017492294312, 1.6996443271636963, 0.4722670316696167],
        18.797072323464484,
    ),
}


def test_every_file_is_collected():
    assert len(FILES) == 27
    assert {path.stem for path in FOLDER.glob("format-1/*.safetensors")} == set(FORMAT_1)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::zoo.errors.ZooWarning")
def test_older_artifact_gives_the_stored_outputs(path):
    report = zoo.verify(path)
    assert report.ok, report
    assert report.checks[-1].status == "ok", report  # the probe


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::zoo.errors.ZooWarning")
def test_older_artifact_can_be_saved_again(path, tmp_path):
    zoo.save(zoo.load(path), tmp_path / "again.safetensors")
    assert zoo.verify(tmp_path / "again.safetensors").ok


@pytest.mark.parametrize("name", FORMAT_1)
@pytest.mark.filterwarnings("ignore::zoo.errors.ZooWarning")
def test_format_1_gives_the_same_outputs_and_can_be_saved_again(name, tmp_path):
    path = FOLDER / "format-1" / f"{name}.safetensors"
    inputs, first, norm = FORMAT_1[name]
    assert read_header(path).format == "1"
    model = zoo.load(path)
    with torch.no_grad():
        logits = model({key: torch.tensor(rows) for key, rows in inputs.items()}).logits
    torch.testing.assert_close(logits.flatten()[:4], torch.tensor(first))
    assert float(logits.double().norm()) == pytest.approx(norm, rel=1e-5)
    again = zoo.save(model, tmp_path / "again.safetensors", provenance={"seed": 3})
    assert read_header(again).format == "2"
    assert zoo.verify(again).ok
