"""Backbones that break their laws."""

from torch import Tensor

from zoo.plugin import Given
from zoo.testing.parts import TinyBackbone


class ShallowerThanItSays(TinyBackbone):
    def __init__(self, *, channels: Given[int]) -> None:
        super().__init__(channels=channels)
        self.output_dim = 6


class ImagesMixed(TinyBackbone):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images - images.mean(dim=0))


class BlindToPixels(TinyBackbone):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images * 0)


BROKEN = [
    ("declared-depth", ShallowerThanItSays, TinyBackbone),
    ("images-apart", ImagesMixed, TinyBackbone),
    ("pixels-matter", BlindToPixels, TinyBackbone),
]
