"""Tests with torchvision if it can be imported, else with a package of the same layout.

The wheels on PyPI cannot be imported with a build of torch without CUDA.
"""

import sys

import pytest
import torch
from torch import nn

import zoo
from zoo import ZooError
from zoo.plugin import MissingExtra, WidthConflict
from zoo.testing import check
from zoo_vision.torchvision import Torchvision

STAND_IN = """
import torch
from torch import nn

def list_models(module=None):
    return ["net", "densenet", "flat", "regnet"]

def get_model(name, weights):
    assert weights is None
    head = nn.Linear(6, 10)
    if name == "flat":
        return nn.Sequential(nn.Flatten())
    if name == "regnet":
        assert torch.linspace(4, 6, 2).tolist() == [4, 6]
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, 2)]
    net = nn.Module()
    if name == "densenet":
        net.features = nn.Sequential(*layers)
        net.classifier = head
    else:
        for index, layer in enumerate(layers):
            net.add_module(f"layer{index}", layer)
        net.avgpool, net.fc = nn.AdaptiveAvgPool2d(1), head
    return net
"""


@pytest.fixture
def torchvision_models():
    try:
        from torchvision import models
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"torchvision cannot be imported here: {error}")
    return models


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write a package with the layout of torchvision and put it first on the path."""

    def write(init: str, models: str) -> None:
        (tmp_path / "torchvision").mkdir()
        (tmp_path / "torchvision" / "__init__.py").write_text(init)
        (tmp_path / "torchvision" / "models.py").write_text(models)
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.syspath_prepend(tmp_path)

    yield write
    for name in ("torchvision", "torchvision.models"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("model", ["net", "densenet"])
def test_the_head_is_removed(package, model):
    package("", STAND_IN)
    backbone = Torchvision(channels=3, model=model).eval()
    images = torch.randn(2, 3, 12, 14, generator=torch.Generator().manual_seed(0))

    features = backbone(images)

    expected = nn.Sequential(*list(backbone.layers)[:4])(images)
    assert features.shape == (2, 6, 2, 2)
    assert backbone.output_dim == 6
    assert backbone.min_size == (8, 8)
    torch.testing.assert_close(features, expected.relu() if model == "densenet" else expected)


def test_regnet_is_built_on_the_meta_device(package):
    package("", STAND_IN)
    with torch.device("meta"):
        backbone = Torchvision(channels=3, model="regnet")
    assert all(weight.is_meta for weight in backbone.parameters())
    assert next(Torchvision(channels=3, model="regnet").parameters()).device.type == "cpu"


def test_modules_limits_the_layers(package):
    package("", STAND_IN)

    backbone = Torchvision(channels=3, model="net", modules=3)

    assert backbone(torch.zeros(1, 3, 12, 14)).shape == (1, 4, 5, 6)
    assert backbone.output_dim == 4
    with pytest.raises(ZooError, match=r"modules \(5\).*4.*'net'"):
        Torchvision(channels=3, model="net", modules=5)


def test_spec_with_torchvision_rejects_small_images(package):
    package("", STAND_IN)
    source = {"type": "regions", "backbone": {"type": "torchvision", "model": "net"}}
    model = {"type": "classifier", "source": source, "encoder": "identity", "classes": 2}
    built = zoo.compose({"zoo": 1, "name": "test", "model": model}).eval()

    logits = built(built.example(2, 4, torch.Generator().manual_seed(0))).logits

    assert logits.shape == (2, 1, 2)
    with pytest.raises(ZooError, match=r"7 x 9.*8 x 8"):
        built({"source": torch.zeros(1, 3, 7, 9), "target": torch.zeros(1, dtype=torch.long)})


def test_an_unknown_model_raises_with_a_suggestion(package):
    package("", STAND_IN)
    with pytest.raises(ZooError, match=r"'densnet'.*densenet"):
        Torchvision(channels=3, model="densnet")


def test_a_model_without_a_feature_map_raises(package):
    package("", STAND_IN)
    with pytest.raises(ZooError, match=r"'torchvision'.*4096"):
        Torchvision(channels=3, model="flat")


def test_one_channel_raises():
    with pytest.raises(WidthConflict, match=r"3 channels.*1"):
        Torchvision(channels=1, model="vgg19")


def test_a_missing_torchvision_raises_with_the_extra(package):
    package("raise ImportError", "")
    with pytest.raises(MissingExtra, match=r"torchvision.*attention-zoo\[vision\]"):
        Torchvision(channels=3, model="vgg19")


def test_an_incompatible_torchvision_raises(package):
    package("raise RuntimeError('operator torchvision::nms does not exist')", "")
    with pytest.raises(ZooError, match=r"torch \d.*operator torchvision::nms"):
        Torchvision(channels=3, model="vgg19")


def test_laws_are_skipped_without_torchvision(package):
    package("raise ImportError", "")
    outcomes = check(Torchvision)
    skipped = [outcome for outcome in outcomes if outcome.status == "skipped"]
    assert "batch-independence" in {outcome.law for outcome in skipped}
    assert all("torchvision" in outcome.message for outcome in skipped)


FEATURE_MAPS = {  # channels and side of the feature map for 224 x 224 images
    "alexnet": (256, 6),
    "densenet121": (1024, 7),
    "efficientnet_b0": (1280, 7),
    "googlenet": (1024, 7),
    "inception_v3": (2048, 5),
    "mnasnet0_5": (1280, 7),
    "mobilenet_v3_small": (576, 7),
    "regnet_y_400mf": (440, 7),
    "resnet18": (512, 7),
    "shufflenet_v2_x0_5": (1024, 7),
    "squeezenet1_1": (512, 13),
    "swin_t": (768, 7),
    "vgg11": (512, 7),
}


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_feature_map_size(torchvision_models, name):
    with torch.device("meta"):
        backbone = Torchvision(channels=3, model=name).eval()
        features = backbone(torch.zeros(1, 3, 224, 224))
    channels, side = FEATURE_MAPS[name]
    assert features.shape == (1, channels, side, side)
    assert backbone.output_dim == channels


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "mobilenet_v3_small"])
def test_feature_map_with_the_head_matches_the_full_model(torchvision_models, name):
    torch.manual_seed(0)
    full = torchvision_models.get_model(name, weights=None).eval()
    backbone = Torchvision(channels=3, model=name).eval()
    tensors = [w for n, w in full.state_dict().items() if not n.startswith(("fc", "classifier"))]
    backbone.load_state_dict(dict(zip(backbone.state_dict(), tensors, strict=True)))
    images = torch.randn(2, 3, 64, 64)

    head = full.fc if hasattr(full, "fc") else full.classifier

    torch.testing.assert_close(head(backbone(images).mean(dim=(2, 3))), full(images))


def test_vgg19_up_to_the_last_convolution(torchvision_models):
    with torch.device("meta"):
        backbone = Torchvision(channels=3, model="vgg19", modules=36)
    assert num_parameters(backbone) == 20_024_384
    assert backbone(torch.zeros(1, 3, 224, 224, device="meta")).shape == (1, 512, 14, 14)


def num_parameters(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def test_a_transformer_raises(torchvision_models):
    with pytest.raises(ZooError, match="4096 x 4096"), torch.device("meta"):
        Torchvision(channels=3, model="vit_b_16")
