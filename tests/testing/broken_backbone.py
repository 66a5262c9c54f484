"""Backbones that break their laws."""

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


BROKEN = [
    ("output-channels", WrongOutputChannels, TinyBackbone),
    ("batch-independence", MixesImages, TinyBackbone),
    ("input-gradient", NoInputGradient, TinyBackbone),
]
