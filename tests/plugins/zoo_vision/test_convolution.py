import re

import pytest
import torch
from torch import nn

import zoo
from zoo import SpecError, ZooError
from zoo.plugin import Blueprint
from zoo_vision.convolution import Convolution
from zoo_vision.layer import ConvolutionLayer, Pool

WIDE = {"size": [2, 2], "stride": [2, 1], "padding": [0, 1]}
# The convolutions of a published CRNN for text in 32 x 128 images.
CRNN = [
    {"channels": 64, "pool": {}},
    {"channels": 128, "pool": {}},
    {"channels": 256, "norm": "batch"},
    {"channels": 256, "pool": WIDE},
    {"channels": 512, "norm": "batch", "pool": WIDE},
    {"channels": 512, "kernel": 2, "padding": 0, "norm": "batch"},
]


def build(layers: list[dict] | None = None, channels: int = 1) -> Convolution:
    """Return the backbone of a composed spec."""
    backbone = {"type": "convolution"} | ({} if layers is None else {"layers": layers})
    source = {"type": "regions", "channels": channels, "backbone": backbone}
    model = {"type": "classifier", "source": source, "encoder": "identity", "classes": 2}
    return zoo.compose({"zoo": 1, "name": "test", "model": model}).source.backbone.eval()


def layer(**params: object) -> Blueprint[ConvolutionLayer]:
    return Blueprint.of(ConvolutionLayer, **params)


def test_known_values():
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

    # Differences plus 0.5 are 3.5 -1.5 1.5 -5.5 and -0.5 -0.5 -0.5 0.5; then ReLU and max pooling.
    assert features.tolist() == [[[[3.5, 1.5], [0.0, 0.5]]]]


def test_matches_the_convolutions_of_a_crnn():
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
    tensors = other.state_dict().values()
    names = backbone.state_dict()
    backbone.load_state_dict(dict(zip(names, tensors, strict=True)))
    images = torch.randn(2, 1, 32, 128, generator=generator)

    features = backbone(images)

    assert features.shape == (2, 512, 1, 33)
    torch.testing.assert_close(features, other(images))
    assert backbone.min_size == (32, 4)


@pytest.mark.parametrize("mode", ["max", "mean"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh", "none"])
def test_activation_and_pooling_match_torch(mode, activation):
    pool = Blueprint.of(Pool, size=3, stride=2, padding=1, mode=mode)
    one = layer(channels=4, kernel=5, stride=(2, 1), bias=False, activation=activation, pool=pool)
    backbone = Convolution(channels=3, layers=[one])
    images = torch.randn(2, 3, 9, 11, generator=torch.Generator().manual_seed(0))

    features = backbone(images)

    conv = nn.Conv2d(3, 4, 5, (2, 1), 2, bias=False)
    conv.load_state_dict(backbone.layers[0].conv.state_dict())
    activated = {"relu": nn.ReLU(), "gelu": nn.GELU(), "tanh": nn.Tanh(), "none": nn.Identity()}
    pooled = {"max": nn.MaxPool2d(3, 2, 1), "mean": nn.AvgPool2d(3, 2, 1)}
    torch.testing.assert_close(features, pooled[mode](activated[activation](conv(images))))


def test_default_layers_are_small():
    backbone = build()

    assert backbone(torch.zeros(2, 1, 28, 28)).shape == (2, 64, 3, 3)
    assert backbone.min_size == (8, 8)
    assert sum(weight.numel() for weight in backbone.parameters()) < 25_000


def test_batch_norm_in_training():
    backbone = Convolution(channels=1, layers=[layer(channels=2, norm="batch", activation="none")])

    features = backbone.train()(torch.randn(8, 1, 6, 6, generator=torch.Generator().manual_seed(0)))

    assert features.mean(dim=(0, 2, 3)).abs().max() < 1e-6
    torch.testing.assert_close(features.var(dim=(0, 2, 3)), torch.ones(2), rtol=0.01, atol=0)


def test_images_smaller_than_min_size_raise():
    backbone = build(CRNN)

    assert min(backbone(torch.zeros(1, 1, 32, 4)).shape) >= 1
    for height, width in ((31, 4), (32, 3)):
        with pytest.raises(ZooError, match=f"{height} x {width}.*'convolution'.*32 x 4"):
            backbone(torch.zeros(1, 1, height, width))


@pytest.mark.parametrize("shape", [(2, 1, 16, 16), (3, 16, 16)])
def test_images_of_another_shape_raise(shape):
    message = rf"'convolution'.*\[B, 3, height, width\].*{re.escape(str(list(shape)))}"
    with pytest.raises(ZooError, match=message):
        build(channels=3)(torch.zeros(shape))


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "layers is empty"),
        ([{"channels": 0}], "channels.*1"),
        ([{"kernel": 3}], "channels"),
        ([{"channels": 2, "kernel": [1, 2, 3]}], "kernel"),
        ([{"channels": 2, "pool": {"size": 2, "padding": 2}}], r"padding \(2\).*\(2\)"),
    ],
)
def test_invalid_layers_raise(layers, message):
    with pytest.raises(SpecError, match=message):
        build(layers)


def test_weight_names_and_shapes():
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
