"""Interface of backbones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component


class Backbone(Component, nn.Module, ABC):
    """Computes a feature map from an image, for an embedding to split into vectors.

    From the parent: channels.

    Laws:
        the feature map has output_dim channels; the features of an image do not depend on the
        rest of the batch; gradients flow to the pixels.

    Attributes:
        output_dim: number of channels of the feature map.
    """

    kind: ClassVar[str] = "backbone"
    widths: ClassVar[tuple[str, ...]] = ("output_dim",)

    output_dim: int

    @abstractmethod
    def forward(self, images: Tensor) -> Tensor:
        """Compute features [B, output_dim, h, w] from images [B, channels, height, width]."""
