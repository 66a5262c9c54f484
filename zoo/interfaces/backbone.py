"""Backbone: images to feature maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component


class Backbone(Component, nn.Module, ABC):
    """Turns an image into a smaller map of features, for an embedding to cut up.

    Given by the parent: channels.

    Laws:
        the map has the declared depth; an image alone gives what it gives in a batch; gradients
        reach the pixels.

    Attributes:
        output_dim: depth of the map.
    """

    kind: ClassVar[str] = "backbone"
    widths: ClassVar[tuple[str, ...]] = ("output_dim",)

    output_dim: int

    @abstractmethod
    def forward(self, images: Tensor) -> Tensor:
        """images [B, channels, height, width] -> features [B, output_dim, h, w]."""
