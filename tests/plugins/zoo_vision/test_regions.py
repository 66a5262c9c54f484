import pytest
import torch

from zoo import ZooError
from zoo.plugin import Blueprint
from zoo.testing.tiny import TinyBackbone
from zoo_vision.convolution import Convolution
from zoo_vision.feature_size import infer_feature_size
from zoo_vision.layer import ConvolutionLayer, Pool
from zoo_vision.regions import Regions


def build() -> Regions:
    torch.manual_seed(0)
    return Regions(backbone=Blueprint.of(TinyBackbone), channels=2)


def test_regions_are_in_row_major_order():
    regions = build()
    images = torch.randn(2, 2, 8, 12)

    vectors = regions(images)

    features = regions.backbone(images)
    assert vectors.shape == (2, 6, 5)
    for row in range(2):
        for column in range(3):
            torch.testing.assert_close(vectors[:, 3 * row + column], features[:, :, row, column])


def test_grid_adds_the_embeddings_of_row_and_column():
    regions = Regions(backbone=Blueprint.of(TinyBackbone), channels=2, grid=(2, 4))
    plain = Regions(backbone=Blueprint.of(TinyBackbone), channels=2)
    plain.load_state_dict(regions.state_dict(), strict=False)
    images = torch.randn(2, 2, 8, 12)

    added = regions(images) - plain(images)

    for row in range(2):
        for column in range(3):
            expected = regions.rows.weight[row] + regions.columns.weight[column]
            torch.testing.assert_close(added[:, 3 * row + column], expected.expand(2, -1))
    with pytest.raises(ZooError, match=r"3 x 2.*'regions'.*2 x 4"):
        regions(torch.zeros(1, 2, 12, 8))


@pytest.mark.parametrize(("height", "width"), [(4, 4), (7, 9), (8, 16)])
def test_all_regions_are_valid(height, width):
    regions = build()
    images = torch.zeros(3, 2, height, width)

    assert regions.mask(images).all()
    assert regions.mask(images).shape == regions(images).shape[:2]


def test_an_example_has_the_requested_number_of_regions():
    example = build().example(2, 5, torch.Generator().manual_seed(0))

    assert example.shape == (2, 2, 4, 20)


def test_images_too_small_for_the_backbone_raise():
    regions = Regions(backbone=Blueprint.of(Convolution), channels=1)
    with pytest.raises(ZooError, match=r"4 x 8.*'convolution'.*8 x 8"):
        regions(torch.zeros(1, 1, 4, 8))


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "pool"),
    [(3, 1, 1, 2), (2, 1, 0, None), (7, 2, 3, 3), (3, 3, 0, 2), (1, 1, 0, None), (4, 2, 2, None)],
)
def test_inferred_size_matches_the_feature_map(kernel, stride, padding, pool):
    pooled = Blueprint.of(Pool, size=pool, stride=2) if pool else None
    layer = Blueprint.of(
        ConvolutionLayer,
        channels=1,
        kernel=kernel,
        stride=stride,
        padding=padding,
        pool=pooled,
    )
    backbone = Convolution(channels=1, layers=[layer, layer])

    height, width = infer_feature_size(backbone, 1)

    assert height == width
    assert height.min_size == backbone.min_size[0]
    for side in range(height.min_size, height.min_size + 40):
        assert backbone(torch.zeros(1, 1, side, side)).shape[2:] == (height.output_size(side),) * 2
    for size in range(2, 9):
        side = height.input_size(size)
        assert height.output_size(side) == size
        assert height.output_size(side - 1) < size or side == height.min_size


def test_a_backbone_of_constant_output_size_raises():
    class Fixed(TinyBackbone):
        """Backbone whose feature map always has size 3 x 3."""

        def forward(self, images):
            return torch.nn.functional.adaptive_avg_pool2d(super().forward(images), 3)

    with pytest.raises(ZooError, match=r"'tiny'.*one size"):
        Regions(backbone=Blueprint.of(Fixed))


def test_a_backbone_without_a_feature_map_raises():
    class Flat(TinyBackbone):
        """Backbone that returns vectors instead of a feature map."""

        def forward(self, images):
            return super().forward(images).flatten(1)

    with pytest.raises(ZooError, match=r"'tiny'.*4096 x 4096.*\[B, D, h, w\]"):
        Regions(backbone=Blueprint.of(Flat))
