"""Backbones that violate a law, and the valid one they are based on."""

from torch import Tensor

from zoo.plugin import FromParent
from zoo.testing.tiny import TinyBackbone


class WrongOutputChannels(TinyBackbone):
    def __init__(self, *, channels: FromParent[int]) -> None:
        super().__init__(channels=channels)
        self.output_dim = 6


class MixesImages(TinyBackbone):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images - images.mean(dim=0))


class NoInputGradient(TinyBackbone):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images * 0)


# (law, broken component, valid component)
BROKEN = [
    ("output-channels", WrongOutputChannels, TinyBackbone),
    ("batch-independence", MixesImages, TinyBackbone),
    ("input-gradient", NoInputGradient, TinyBackbone),
]
