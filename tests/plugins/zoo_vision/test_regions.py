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


def test_the_map_is_read_row_by_row():
    regions = build()
    images = torch.randn(2, 2, 8, 12)

    vectors = regions(images)

    features = regions.backbone(images)
    assert vectors.shape == (2, 6, 5)
    for row in range(2):
        for column in range(3):
            torch.testing.assert_close(vectors[:, 3 * row + column], features[:, :, row, column])


@pytest.mark.parametrize(("height", "width"), [(4, 4), (7, 9), (8, 16)])
def test_every_region_is_real(height, width):
    regions = build()
    images = torch.zeros(3, 2, height, width)

    assert regions.mask(images).all()
    assert regions.mask(images).shape == regions(images).shape[:2]


def test_an_example_has_as_many_regions_as_asked_for():
    example = build().example(2, 5, torch.Generator().manual_seed(0))

    assert example.shape == (2, 2, 4, 20)


def test_a_small_image_is_refused_by_its_backbone():
    regions = Regions(backbone=Blueprint.of(Convolution), channels=1)
    with pytest.raises(ZooError, match="images of 4 x 8 pixels are too small for backbone"):
        regions(torch.zeros(1, 1, 4, 8))


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "pool"),
    [(3, 1, 1, 2), (2, 1, 0, None), (7, 2, 3, 3), (3, 3, 0, 2), (1, 1, 0, None), (4, 2, 2, None)],
)
def test_the_size_of_a_map_is_known_beforehand(kernel, stride, padding, pool):
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

    high, wide = infer_feature_size(backbone, 1)

    assert high == wide
    assert high.least == backbone.least[0]
    for side in range(high.least, high.least + 40):
        assert backbone(torch.zeros(1, 1, side, side)).shape[2:] == (high.places(side),) * 2
    for places in range(2, 9):
        side = high.needed(places)
        assert high.places(side) == places
        assert high.places(side - 1) < places or side == high.least


def test_a_backbone_without_a_map_of_its_own_size_is_refused():
    class Fixed(TinyBackbone):
        """One size for all."""

        def forward(self, images):
            return torch.nn.functional.adaptive_avg_pool2d(super().forward(images), 3)

    with pytest.raises(ZooError, match="backbone 'tiny' makes maps of one size"):
        Regions(backbone=Blueprint.of(Fixed))


def test_a_backbone_that_makes_no_map_is_refused():
    class Flat(TinyBackbone):
        """No map."""

        def forward(self, images):
            return super().forward(images).flatten(1)

    with pytest.raises(ZooError, match=r"'tiny' makes no map of .* not \[B, D, h, w\]"):
        Regions(backbone=Blueprint.of(Flat))
