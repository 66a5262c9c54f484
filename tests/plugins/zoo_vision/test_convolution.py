import pytest
import torch
from torch import nn

import zoo
from zoo import SpecError, ZooError
from zoo.plugin import Blueprint
from zoo_vision.convolution import Convolution
from zoo_vision.layer import ConvolutionLayer, Pool

WIDE = {"size": [2, 2], "stride": [2, 1], "padding": [0, 1]}
# The convolutions of a published CRNN for text in images of 32 x 128.
CRNN = [
    {"channels": 64, "pool": {}},
    {"channels": 128, "pool": {}},
    {"channels": 256, "norm": "batch"},
    {"channels": 256, "pool": WIDE},
    {"channels": 512, "norm": "batch", "pool": WIDE},
    {"channels": 512, "kernel": 2, "padding": 0, "norm": "batch"},
]


def build(layers: list[dict] | None = None, channels: int = 1) -> Convolution:
    """As a spec builds it."""
    backbone = {"type": "convolution"} | ({} if layers is None else {"layers": layers})
    source = {"type": "regions", "channels": channels, "backbone": backbone}
    model = {"type": "classifier", "source": source, "encoder": "identity", "classes": 2}
    return zoo.compose({"zoo": 1, "name": "test", "model": model}).source.backbone.eval()


def layer(**params: object) -> Blueprint[ConvolutionLayer]:
    return Blueprint.of(ConvolutionLayer, **params)


def test_a_map_of_known_numbers():
    pool = Blueprint.of(Pool, size=(1, 2))
    backbone = Convolution(
        channels=1, layers=[layer(channels=1, kernel=(1, 2), padding=0, pool=pool)]
    )
    backbone.load_state_dict(
        {
            "layers.0.conv.weight": torch.tensor([[[[1.0, -1.0]]]]),
            "layers.0.conv.bias": torch.tensor([0.5]),
        }
    )

    features = backbone(torch.tensor([[[[5.0, 2.0, 4.0, 3.0, 9.0], [0.0, 1.0, 2.0, 3.0, 3.0]]]]))

    # Differences and a half: 3.5 -1.5 1.5 -5.5 and -0.5 -0.5 -0.5 0.5; none below 0; the larger.
    assert features.tolist() == [[[[3.5, 1.5], [0.0, 0.5]]]]


def test_it_is_the_convolutions_of_a_crnn():
    backbone = build(CRNN)
    other = nn.Sequential(
        *(nn.Conv2d(1, 64, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2, 2)),
        *(nn.Conv2d(64, 128, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2, 2)),
        *(nn.Conv2d(128, 256, 3, 1, 1), nn.BatchNorm2d(256), nn.ReLU()),
        *(nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.MaxPool2d((2, 2), (2, 1), (0, 1))),
        *(nn.Conv2d(256, 512, 3, 1, 1), nn.BatchNorm2d(512), nn.ReLU()),
        nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
        *(nn.Conv2d(512, 512, 2, 1, 0), nn.BatchNorm2d(512), nn.ReLU()),
    ).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for tensor in other.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(0.1 * torch.rand(tensor.shape, generator=generator) - 0.02)
        for module in other:
            if isinstance(module, nn.BatchNorm2d):
                module.running_var.add_(0.5)
    theirs = other.state_dict().values()
    mine = backbone.state_dict()
    backbone.load_state_dict(dict(zip(mine, theirs, strict=True)))
    images = torch.randn(2, 1, 32, 128, generator=generator)

    features = backbone(images)

    assert features.shape == (2, 512, 1, 33)
    torch.testing.assert_close(features, other(images))
    assert backbone.least == (32, 4)


@pytest.mark.parametrize("how", ["max", "mean"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh", "none"])
def test_what_follows_a_convolution_equals_torchs(how, activation):
    pool = Blueprint.of(Pool, size=3, stride=2, padding=1, how=how)
    one = layer(channels=4, kernel=5, stride=(2, 1), bias=False, activation=activation, pool=pool)
    backbone = Convolution(channels=3, layers=[one])
    images = torch.randn(2, 3, 9, 11, generator=torch.Generator().manual_seed(0))

    features = backbone(images)

    conv = nn.Conv2d(3, 4, 5, (2, 1), 2, bias=False)
    conv.load_state_dict(backbone.layers[0].conv.state_dict())
    activated = {"relu": nn.ReLU(), "gelu": nn.GELU(), "tanh": nn.Tanh(), "none": nn.Identity()}
    pooled = {"max": nn.MaxPool2d(3, 2, 1), "mean": nn.AvgPool2d(3, 2, 1)}
    torch.testing.assert_close(features, pooled[how](activated[activation](conv(images))))


def test_without_layers_it_is_small():
    backbone = build()

    assert backbone(torch.zeros(2, 1, 28, 28)).shape == (2, 64, 3, 3)
    assert backbone.least == (8, 8)
    assert sum(weight.numel() for weight in backbone.parameters()) < 25_000


def test_in_training_a_batch_is_normalised_as_one():
    backbone = Convolution(channels=1, layers=[layer(channels=2, norm="batch", activation="none")])

    features = backbone.train()(torch.randn(8, 1, 6, 6, generator=torch.Generator().manual_seed(0)))

    assert features.mean(dim=(0, 2, 3)).abs().max() < 1e-6
    torch.testing.assert_close(features.var(dim=(0, 2, 3)), torch.ones(2), rtol=0.01, atol=0)


def test_the_smallest_image_gives_a_map_and_a_smaller_one_is_refused():
    backbone = build(CRNN)

    assert min(backbone(torch.zeros(1, 1, 32, 4)).shape) >= 1
    for height, width in ((31, 4), (32, 3)):
        message = (
            f"images of {height} x {width} pixels are too small for backbone 'convolution', "
            "which needs at least 32 x 4"
        )
        with pytest.raises(ZooError, match=message):
            backbone(torch.zeros(1, 1, height, width))


@pytest.mark.parametrize("shape", [(2, 1, 16, 16), (3, 16, 16)])
def test_images_of_other_channels_are_refused(shape):
    with pytest.raises(ZooError) as refused:
        build(channels=3)(torch.zeros(shape))
    assert str(refused.value) == (
        f"backbone 'convolution' reads images [B, 3, height, width], not {list(shape)}"
    )


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "layers: at least one is needed"),
        ([{"channels": 0}], "channels: .*greater than or equal to 1"),
        ([{"kernel": 3}], "channels"),
        ([{"channels": 2, "kernel": [1, 2, 3]}], "kernel"),
        ([{"channels": 2, "pool": {"size": 2, "padding": 2}}], r"padding \(2\) must be at most"),
    ],
)
def test_bad_layers_are_refused(layers, message):
    with pytest.raises(SpecError, match=message):
        build(layers)


def test_its_weights_are_named():
    names = {
        k: tuple(v.shape) for k, v in build([{"channels": 2, "norm": "batch"}]).state_dict().items()
    }

    assert names == {
        "layers.0.conv.weight": (2, 1, 3, 3),
        "layers.0.conv.bias": (2,),
        "layers.0.norm.weight": (2,),
        "layers.0.norm.bias": (2,),
        "layers.0.norm.running_mean": (2,),
        "layers.0.norm.running_var": (2,),
        "layers.0.norm.num_batches_tracked": (),
    }
