"""With torchvision where it can be imported; without it, with a package of its shape.

The wheels on PyPI do not load beside a torch that was built without CUDA.
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
def real():
    try:
        from torchvision import models
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"torchvision cannot be imported here: {error}")
    return models


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package of torchvision's shape and puts it before any other."""

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
def test_a_model_is_cut_before_its_head(package, model):
    package("", STAND_IN)
    backbone = Torchvision(channels=3, model=model).eval()
    images = torch.randn(2, 3, 12, 14, generator=torch.Generator().manual_seed(0))

    features = backbone(images)

    expected = nn.Sequential(*list(backbone.layers)[:4])(images)
    assert features.shape == (2, 6, 2, 2)
    assert backbone.output_dim == 6
    assert backbone.least == (8, 8)
    torch.testing.assert_close(features, expected.relu() if model == "densenet" else expected)


def test_a_model_that_computes_its_widths_is_known_on_the_meta_device(package):
    package("", STAND_IN)
    with torch.device("meta"):
        backbone = Torchvision(channels=3, model="regnet")
    assert all(weight.is_meta for weight in backbone.parameters())
    assert next(Torchvision(channels=3, model="regnet").parameters()).device.type == "cpu"


def test_fewer_modules_can_be_kept(package):
    package("", STAND_IN)

    backbone = Torchvision(channels=3, model="net", modules=3)

    assert backbone(torch.zeros(1, 3, 12, 14)).shape == (1, 4, 5, 6)
    assert backbone.output_dim == 4
    with pytest.raises(ZooError, match=r"modules \(5\) must be at most 4, as 'net' has"):
        Torchvision(channels=3, model="net", modules=5)


def test_a_spec_names_it_and_a_small_image_is_refused(package):
    package("", STAND_IN)
    source = {"type": "regions", "backbone": {"type": "torchvision", "model": "net"}}
    model = {"type": "classifier", "source": source, "encoder": "identity", "classes": 2}
    built = zoo.compose({"zoo": 1, "name": "test", "model": model}).eval()

    logits = built(built.example(2, 4, torch.Generator().manual_seed(0))).logits

    assert logits.shape == (2, 1, 2)
    with pytest.raises(ZooError, match=r"images of 7 x 9 pixels are too small .* at least 8 x 8"):
        built({"source": torch.zeros(1, 3, 7, 9), "target": torch.zeros(1, dtype=torch.long)})


def test_a_name_that_is_none_is_refused_with_the_nearest(package):
    package("", STAND_IN)
    with pytest.raises(ZooError, match="has no model 'densnet'; did you mean densenet"):
        Torchvision(channels=3, model="densnet")


def test_a_model_without_a_map_is_refused(package):
    package("", STAND_IN)
    with pytest.raises(ZooError, match="backbone 'torchvision' makes no map"):
        Torchvision(channels=3, model="flat")


def test_other_than_three_channels_are_refused():
    with pytest.raises(WidthConflict, match="read images of 3 channels: channels is 1"):
        Torchvision(channels=1, model="vgg19")


def test_without_torchvision_the_extra_is_named(package):
    package("raise ImportError", "")
    with pytest.raises(MissingExtra, match=r"needs torchvision.*attention-zoo\[vision\]"):
        Torchvision(channels=3, model="vgg19")


def test_a_torchvision_for_another_torch_is_called_that(package):
    package("raise RuntimeError('operator torchvision::nms does not exist')", "")
    with pytest.raises(ZooError, match=r"was not made for torch .*: operator torchvision::nms"):
        Torchvision(channels=3, model="vgg19")


def test_the_laws_wait_for_torchvision(package):
    package("raise ImportError", "")
    outcomes = check(Torchvision)
    skipped = [outcome for outcome in outcomes if outcome.status == "skipped"]
    assert "batch-independence" in {outcome.law for outcome in skipped}
    assert all("needs torchvision" in outcome.message for outcome in skipped)


MAPS = {  # the depth of the last map, and the side it has of 224 pixels
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


@pytest.mark.parametrize("name", MAPS)
def test_a_real_model_is_cut_where_it_pools(real, name):
    with torch.device("meta"):
        backbone = Torchvision(channels=3, model=name).eval()
        features = backbone(torch.zeros(1, 3, 224, 224))
    depth, side = MAPS[name]
    assert features.shape == (1, depth, side, side)
    assert backbone.output_dim == depth


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "mobilenet_v3_small"])
def test_pooled_and_classified_the_map_gives_what_the_whole_model_gives(real, name):
    torch.manual_seed(0)
    whole = real.get_model(name, weights=None).eval()
    backbone = Torchvision(channels=3, model=name).eval()
    theirs = [w for n, w in whole.state_dict().items() if not n.startswith(("fc", "classifier"))]
    backbone.load_state_dict(dict(zip(backbone.state_dict(), theirs, strict=True)))
    images = torch.randn(2, 3, 64, 64)

    head = whole.fc if hasattr(whole, "fc") else whole.classifier

    torch.testing.assert_close(head(backbone(images).mean(dim=(2, 3))), whole(images))


def test_the_map_of_show_attend_and_tell(real):
    with torch.device("meta"):
        backbone = Torchvision(channels=3, model="vgg19", modules=36)
    assert weights(backbone) == 20_024_384
    assert backbone(torch.zeros(1, 3, 224, 224, device="meta")).shape == (1, 512, 14, 14)


def weights(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def test_a_transformer_has_no_map(real):
    with pytest.raises(ZooError, match="makes no map"), torch.device("meta"):
        Torchvision(channels=3, model="vit_b_16")
