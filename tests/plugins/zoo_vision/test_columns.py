import pytest
import torch

import zoo
from zoo import SpecError, ZooError
from zoo.plugin import Blueprint
from zoo.testing.tiny import TinyBackbone
from zoo_vision.columns import Columns


def build() -> Columns:
    torch.manual_seed(0)
    return Columns(backbone=Blueprint.of(TinyBackbone), height=8, channels=2)


def test_columns_are_ordered_by_channel_then_height():
    columns = build()
    images = torch.randn(2, 2, 8, 12)

    vectors = columns(images)

    features = columns.backbone(images)
    assert vectors.shape == (2, 3, 10)
    for column in range(3):
        expected = [features[:, channel, row, column] for channel in range(5) for row in range(2)]
        torch.testing.assert_close(vectors[:, column], torch.stack(expected, dim=1))


@pytest.mark.parametrize("width", [4, 7, 8, 33])
def test_all_columns_are_valid(width):
    columns = build()
    images = torch.zeros(3, 2, 8, width)

    assert columns.mask(images).all()
    assert columns.mask(images).shape == columns(images).shape[:2]


def test_an_example_has_the_requested_number_of_columns():
    assert build().example(2, 5, torch.Generator().manual_seed(0)).shape == (2, 2, 8, 20)


def test_images_of_another_height_raise():
    with pytest.raises(ZooError, match=r"'columns'.*\[B, 2, 8, width\].*\[1, 2, 12, 8\]"):
        build()(torch.zeros(1, 2, 12, 8))


def test_compose_rejects_a_height_too_small_for_the_backbone():
    source = {"type": "columns", "height": 7, "backbone": "convolution"}
    model = {"type": "classifier", "source": source, "encoder": "identity", "classes": 2}
    with pytest.raises(SpecError, match=r"height \(7\).*'convolution'.*8"):
        zoo.compose({"zoo": 1, "name": "test", "model": model})
