"""Column embedding of a feature map."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Backbone, Blueprint, Embedding, TensorSchema
from zoo_vision.feature_size import infer_feature_size


class Columns(Embedding):
    r"""Column embedding: each column of a backbone's feature map is one vector.

    .. math:: x_j = [F_{1j}; \dots; F_{hj}], \qquad F = \mathrm{backbone}(I)

    Paper: Shi et al. 2015, section 2.1. Within a vector, channels vary slowest, height fastest.

    Args:
        backbone: computes the feature map.
        height: image height in pixels.
        channels: number of image channels.

    Shapes:
        [B, channels, height, width] -> [B, w, dim], for a feature map [B, dim / h, h, w].
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
        if height < height_axis.min_size:
            raise ZooError(
                f"height ({height}) is too small for backbone '{self.backbone.name}', "
                f"which needs at least {height_axis.min_size}"
            )
        self.dim = self.backbone.output_dim * height_axis.output_size(height)

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.dim() != 4 or inputs.shape[2] != self.height:
            raise ZooError(
                f"embedding '{self.name}' expects images [B, {self.channels}, {self.height}, "
                f"width], but got {list(inputs.shape)}"
            )
        features: Tensor = self.backbone(inputs)  # [B, D, h, w]
        return features.permute(0, 3, 1, 2).flatten(2)

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", self.channels, self.height, "W"), "float", same_size=True)

    def mask(self, inputs: Tensor) -> Tensor:
        shape = (inputs.shape[0], self.width_axis.output_size(inputs.shape[3]))
        return torch.ones(shape, dtype=torch.bool, device=inputs.device)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        weight = next(self.backbone.parameters())
        shape = (batch, self.channels, self.height, self.width_axis.input_size(length))
        device = generator.device if generator else weight.device
        return torch.randn(shape, generator=generator, device=device).to(weight)
