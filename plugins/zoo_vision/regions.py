"""Region embedding of a feature map."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import Backbone, Blueprint, Embedding, TensorSchema
from zoo_vision.feature_size import infer_feature_size
from zoo_vision.grid_positions import grid_positions

Count = Annotated[int, Field(ge=1, le=4096)]


class Regions(Embedding):
    r"""Region embedding: each position of a backbone's feature map is one vector.

    .. math:: a = \{F_{11}, F_{12}, \dots, F_{hw}\}, \qquad F = \mathrm{backbone}(I)

    Paper: Xu et al. 2015, section 3.1.1. A vector depends on the position of its region only where
    the receptive field reaches the border of the image; with ``grid``, learned embeddings of row
    and column are added.

    Args:
        backbone: computes the feature map.
        channels: number of image channels.
        grid: maximum number of rows and columns of the feature map, for the embeddings; no
            embeddings if not set.

    Shapes:
        [B, channels, height, width] -> [B, h * w, dim] in row-major order, for a feature map
        [B, dim, h, w].
    """

    name: ClassVar[str] = "regions"
    paper: ClassVar[str] = (
        "Xu et al. 2015, Show, Attend and Tell: Neural Image Caption Generation with Visual "
        "Attention, arXiv:1502.03044"
    )

    def __init__(
        self,
        *,
        backbone: Blueprint[Backbone],
        channels: Annotated[int, Field(ge=1)] = 3,
        grid: tuple[Count, Count] | None = None,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.backbone = backbone.build(channels=channels)
        self.dim = self.backbone.output_dim
        self.rows = nn.Embedding(grid[0], self.dim) if grid else None
        self.columns = nn.Embedding(grid[1], self.dim) if grid else None
        self.height_axis, self.width_axis = infer_feature_size(self.backbone, channels)

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.backbone(inputs)  # [B, D, h, w]
        vectors = features.flatten(2).transpose(1, 2)
        if self.rows is None or self.columns is None:
            return vectors
        positions = grid_positions(self.rows, self.columns, features.shape[2:], self.name)
        return vectors + positions.flatten(0, 1)

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", self.channels, "H", "W"), "float", same_size=True)

    def mask(self, inputs: Tensor) -> Tensor:
        count = self.height_axis.output_size(inputs.shape[2]) * self.width_axis.output_size(
            inputs.shape[3]
        )
        return torch.ones(inputs.shape[0], count, dtype=torch.bool, device=inputs.device)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        """Return random images whose feature map has one row of ``length`` regions."""
        weight = next(self.backbone.parameters())
        shape = (
            batch,
            self.channels,
            self.height_axis.input_size(1),
            self.width_axis.input_size(length),
        )
        device = generator.device if generator else weight.device
        return torch.randn(shape, generator=generator, device=device).to(weight)
