"""Torchvision backbone: any of its convolutional models, without the head."""

from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Backbone, FromParent, MissingExtra, WidthConflict
from zoo_vision.feature_size import infer_feature_size, to_meta, validate_images

HEADS = ("avgpool", "classifier", "fc", "head", "heads")
"""What torchvision calls the parts that come after the map of features."""


class Torchvision(Backbone):
    r"""A model of torchvision, cut off before it pools and classifies; its weights are random.

    .. math:: F = (f_n \circ \dots \circ f_1)(I)

    Paper: Simonyan and Zisserman 2015 for vgg, He et al. 2016 for resnet; each model of
    torchvision names its own.

    Args:
        channels: of the image; these models read three.
        model: its name in torchvision, such as vgg19 or resnet50.
        modules: how many of its modules to keep; all before the head if not set.

    Shapes:
        [B, 3, height, width] -> [B, depth of the last module kept, h, w].
    """

    name: ClassVar[str] = "torchvision"
    paper: ClassVar[str] = (
        "Simonyan and Zisserman 2015, Very Deep Convolutional Networks for Large-Scale Image "
        "Recognition, arXiv:1409.1556"
    )
    test_params: ClassVar[dict[str, Any]] = {"model": "squeezenet1_1"}

    def __init__(
        self,
        *,
        channels: FromParent[int],
        model: str,
        modules: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        super().__init__()
        if channels != 3:
            raise WidthConflict(
                "models of torchvision read images of 3 channels", channels=channels
            )
        kept = _feature_modules(_load_model(model), model)
        if modules is not None and modules > len(kept):
            raise ZooError(f"modules ({modules}) must be at most {len(kept)}, as '{model}' has")
        self.layers = nn.Sequential(*kept[:modules])
        self.least = (1, 1)
        height_axis, width_axis = infer_feature_size(self, channels)
        self.least = (height_axis.least, width_axis.least)
        smallest = torch.empty(1, channels, *self.least, device="meta")
        self.output_dim = to_meta(self)(smallest).shape[1]

    def forward(self, images: Tensor) -> Tensor:
        validate_images(images, self.name, channels=3, least=self.least)
        features: Tensor = self.layers(images)
        return features


def _feature_modules(model: nn.Module, name: str) -> list[nn.Module]:
    """The modules up to the map of features, in their order."""
    kept: list[nn.Module] = []
    for child_name, module in model.named_children():
        if child_name in HEADS:
            break
        kept.append(module)
    if len(kept) == 1 and isinstance(kept[0], nn.Sequential):
        kept = list(kept[0])
    # DenseNet bends its features by a function, which is no module.
    return [*kept, nn.ReLU()] if name.startswith("densenet") else kept


def _load_model(name: str) -> nn.Module:
    try:
        from torchvision import models
    except ImportError:
        what = "backbone 'torchvision'"
        raise MissingExtra(what, library="torchvision", extra="vision") from None
    except RuntimeError as error:
        raise ZooError(
            f"the torchvision installed here was not made for torch {torch.__version__}: {error}"
        ) from None
    known = models.list_models(module=models)
    if name not in known:
        near = get_close_matches(name, known)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ZooError(f"torchvision has no model '{name}'{hint}")
    # These two have further heads in between, and warn unless told how to begin.
    further = name in ("googlenet", "inception_v3")
    options = {"aux_logits": False, "init_weights": False} if further else {}
    # A RegNet computes its widths with tensors, whose numbers the meta device does not know.
    here = torch.empty(0).device
    with torch.device("cpu" if name.startswith("regnet") else here):
        model: nn.Module = models.get_model(name, weights=None, **options)
    return model.to(here)
