"""Dataset 'delta-audio'."""

import numpy as np
import pytest

from zoo import DataError
from zoo_datasets.delta_audio import DeltaAudio


def test_samples_are_sums_of_differences(tmp_path):
    examples = DeltaAudio(**DeltaAudio.write_example(tmp_path)).open()
    first, second = (examples[i]["source"] for i in range(2))
    assert (first.samples * 32768).tolist() == [5, 2]
    assert (second.samples * 32768).tolist() == [702, 702, -298]
    assert (first.rate, first.samples.dtype) == (8000, np.float32)
    assert [examples[i]["target"] for i in range(2)] == ["3", "7"]
    assert examples.sizes() == [2, 3]


def test_recordings_are_selected_by_columns(tmp_path):
    params = DeltaAudio.write_example(tmp_path)
    examples = DeltaAudio(**params, where={"digit": [7, 8], "speaker": ["bob"]}).open()
    assert len(examples) == 1
    assert examples.origin(0).endswith("index.tsv:3")
    with pytest.raises(DataError, match="no recording has the values of 'where'"):
        DeltaAudio(**params, where={"speaker": ["eve"]}).open()


def test_files_that_do_not_fit_are_rejected(tmp_path):
    params = DeltaAudio.write_example(tmp_path)
    (tmp_path / "index.tsv").write_text("digit\tsamples\n3\t2\n")
    with pytest.raises(DataError, match=r"has 5 samples, but .*index.tsv lists 2"):
        DeltaAudio(**params).open()
    (tmp_path / "audio.delta16").write_bytes(b"123")
    with pytest.raises(DataError, match="it has 3 bytes, an odd number"):
        DeltaAudio(**params).open()
