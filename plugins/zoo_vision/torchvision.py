"""Torchvision backbone."""

from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Backbone, FromParent, MissingExtra, WidthConflict
from zoo_vision.feature_size import infer_feature_size, to_meta, validate_images

HEADS = ("avgpool", "classifier", "fc", "head", "heads")
"""Names of torchvision modules that follow the feature map."""


class Torchvision(Backbone):
    r"""Torchvision backbone: a torchvision model without pooling and head, randomly initialised.

    .. math:: F = (f_n \circ \dots \circ f_1)(I)

    Paper: Simonyan and Zisserman 2015 for vgg, He et al. 2016 for resnet; the documentation of
    torchvision lists the others.

    Args:
        channels: number of image channels; must be 3.
        model: torchvision model name, such as vgg19 or resnet50.
        modules: number of modules to use; by default all before the head.

    Shapes:
        [B, 3, height, width] -> [B, output_dim, h, w].
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
            raise WidthConflict("torchvision models expect images of 3 channels", channels=channels)
        self.channels = channels
        self.model = model
        available = _feature_modules(_load_model(model), model)
        if modules is not None and modules > len(available):
            raise ZooError(
                f"modules ({modules}) must be at most {len(available)}, the number of feature "
                f"modules of '{model}'"
            )
        self.layers = nn.Sequential(*available[:modules])
        self.min_size = (1, 1)
        height_axis, width_axis = infer_feature_size(self, channels)
        self.min_size = (height_axis.min_size, width_axis.min_size)
        smallest = torch.empty(1, channels, *self.min_size, device="meta")
        self.output_dim = to_meta(self)(smallest).shape[1]

    def forward(self, images: Tensor) -> Tensor:
        validate_images(images, self.name, channels=3, min_size=self.min_size)
        features: Tensor = self.layers(images)
        return features


def _feature_modules(model: nn.Module, name: str) -> list[nn.Module]:
    """Return the modules up to the feature map, in order."""
    modules: list[nn.Module] = []
    for child_name, module in model.named_children():
        if child_name in HEADS:
            break
        modules.append(module)
    if len(modules) == 1 and isinstance(modules[0], nn.Sequential):
        modules = list(modules[0])
    # DenseNet applies a functional ReLU to its features, which is not a module.
    return [*modules, nn.ReLU()] if name.startswith("densenet") else modules


def _load_model(name: str) -> nn.Module:
    try:
        from torchvision import models
    except ImportError:
        what = "backbone 'torchvision'"
        raise MissingExtra(what, library="torchvision", extra="vision") from None
    except RuntimeError as error:
        raise ZooError(
            f"the installed torchvision is not compatible with torch {torch.__version__}: {error}"
        ) from None
    known = models.list_models(module=models)
    if name not in known:
        matches = get_close_matches(name, known)
        hint = f"; did you mean {' or '.join(matches)}?" if matches else ""
        raise ZooError(f"torchvision has no model '{name}'{hint}")
    # These two have auxiliary heads and warn if init_weights is not set.
    has_auxiliary = name in ("googlenet", "inception_v3")
    options = {"aux_logits": False, "init_weights": False} if has_auxiliary else {}
    # RegNet computes its widths from tensor values, which the meta device does not have.
    device = torch.empty(0).device
    with torch.device("cpu" if name.startswith("regnet") else device):
        model: nn.Module = models.get_model(name, weights=None, **options)
    return model.to(device)
