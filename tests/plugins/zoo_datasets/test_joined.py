"""Dataset 'joined'."""

import numpy as np
import pytest

from zoo import ZooError
from zoo.plugin import Blueprint
from zoo_datasets.delta_audio import DeltaAudio
from zoo_datasets.joined import Joined


@pytest.fixture
def data(tmp_path):
    return Blueprint.of(DeltaAudio, **DeltaAudio.write_example(tmp_path), group="speaker")


def test_recordings_of_one_speaker_are_joined(data):
    recordings = data.build().open()
    samples = {recordings[i]["target"]: recordings[i]["source"].samples for i in range(2)}
    examples = Joined(data=data, least=1, most=3, count=20, group="group").open()
    assert len(examples) == 20
    for index in range(20):
        digits = examples[index]["target"].split()
        assert len(set(digits)) == 1
        expected = np.concatenate([samples[digit] for digit in digits])
        assert np.array_equal(examples[index]["source"].samples, expected)
        assert examples.sizes()[index] == len(expected)
    assert {len(examples[index]["target"].split()) for index in range(20)} == {1, 2, 3}


def test_pauses_are_silent(data):
    joined = Joined(data=data, least=2, most=2, count=5, pause=0.01).open()
    longest = max(len(joined[index]["source"].samples) for index in range(5))
    assert 6 < longest <= 6 + 80


def test_an_unknown_group_is_rejected(data):
    with pytest.raises(ZooError, match=r"no field 'speaker' \(fields: source, target, group\)"):
        Joined(data=data, group="speaker")
