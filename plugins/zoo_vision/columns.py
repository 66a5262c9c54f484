"""Columns: a feature map read from left to right."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Backbone, Blueprint, Embedding
from zoo_vision.feature_size import infer_feature_size


class Columns(Embedding):
    r"""Each column of a feature map as one vector, for lines of text read from left to right.

    .. math:: x_j = [F_{1j}; \dots; F_{hj}], \qquad F = \mathrm{backbone}(I)

    Paper: Shi et al. 2015, section 2.1. Depth varies slowest in a vector, height fastest.

    Args:
        backbone: makes the map of features.
        height: of the images, in pixels.
        channels: of the images.

    Shapes:
        [B, channels, height, width] -> [B, w, dim], where the map is h x w and dim / h deep.
    """

    name: ClassVar[str] = "columns"
    paper: ClassVar[str] = (
        "Shi et al. 2015, An End-to-End Trainable Neural Network for Image-based Sequence "
        "Recognition and Its Application to Scene Text Recognition, arXiv:1507.05717"
    )

    def __init__(
        self,
        *,
        backbone: Blueprint[Backbone],
        height: Annotated[int, Field(ge=1)] = 32,
        channels: Annotated[int, Field(ge=1)] = 1,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.height = height
        self.backbone = backbone.build(channels=channels)
        height_axis, self.width_axis = infer_feature_size(self.backbone, channels)
        if height < height_axis.least:
            raise ZooError(
                f"height ({height}) is too small for backbone '{self.backbone.name}', "
                f"which needs at least {height_axis.least}"
            )
        self.dim = self.backbone.output_dim * height_axis.places(height)

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.dim() != 4 or inputs.shape[2] != self.height:
            raise ZooError(
                f"embedding 'columns' reads images [B, {self.channels}, {self.height}, width], "
                f"not {list(inputs.shape)}"
            )
        features: Tensor = self.backbone(inputs)  # [B, D, h, w]
        return features.permute(0, 3, 1, 2).flatten(2)

    def mask(self, inputs: Tensor) -> Tensor:
        shape = (inputs.shape[0], self.width_axis.places(inputs.shape[3]))
        return torch.ones(shape, dtype=torch.bool, device=inputs.device)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        weight = next(self.backbone.parameters())
        shape = (batch, self.channels, self.height, self.width_axis.needed(length))
        device = generator.device if generator else weight.device
        return torch.randn(shape, generator=generator, device=device).to(weight)
