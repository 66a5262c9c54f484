"""Dataset 'scenes'."""

import numpy as np
import pytest

from zoo import DataError, ZooError
from zoo.plugin import Blueprint
from zoo_datasets.idx import Idx
from zoo_datasets.scenes import Scenes


@pytest.fixture
def data(tmp_path):
    return Blueprint.of(Idx, **Idx.write_example(tmp_path))  # two images of 3 x 4, labels 7 and 0


def test_images_do_not_overlap_and_labels_are_in_order(data):
    images = data.build().open()
    sums = {images[i]["target"]: int(images[i]["source"].sum()) for i in range(2)}
    scenes = Scenes(data=data, size=(6, 14), least=1, most=3, count=30).open()
    lengths = set()
    for index in range(30):
        scene = scenes[index]
        labels = [int(label) for label in scene["target"].split()]
        lengths.add(len(labels))
        assert scene["source"].shape == (6, 14, 1)
        assert scene["source"].sum() == sum(sums[label] for label in labels)
        columns = np.flatnonzero(scene["source"].sum(axis=(0, 2)))
        if labels == [7, 0]:  # the largest pixel of image 0 is smaller than those of image 1
            assert scene["source"][:, columns[0]].max() < scene["source"][:, columns[-1]].max()
    assert lengths == {1, 2, 3}


def test_the_label_of_one_image_at_any_position(data):
    scenes = Scenes(data=data, size=(5, 5), target="label", count=40).open()
    assert {scenes[index]["target"] for index in range(40)} == {0, 7}
    assert len({scenes[index]["source"].tobytes() for index in range(40)}) > 6
    assert len(Scenes(data=data, size=(5, 5)).open()) == 2


def test_invalid_sizes_and_numbers_are_rejected(data):
    with pytest.raises(DataError, match="2 images do not fit into a scene of 3 x 7"):
        Scenes(data=data, size=(3, 7), least=2, most=2).open()[0]
    with pytest.raises(ZooError, match=r"least \(2\) must not be greater than most \(1\)"):
        Scenes(data=data, size=(9, 9), least=2)
    with pytest.raises(ZooError, match="a scene with one label has one image"):
        Scenes(data=data, size=(9, 9), most=2, target="label")
