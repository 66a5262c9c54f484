"""Size of the feature map that a backbone computes for an image."""

import copy
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain

import torch
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Backbone

MAX_PIXELS = 4096
"""Largest image side that `infer_feature_size` tries."""


def validate_images(images: Tensor, name: str, *, channels: int, min_size: tuple[int, int]) -> None:
    """Raise ZooError if images have another number of channels or are smaller than min_size."""
    if images.dim() != 4 or images.shape[1] != channels:
        raise ZooError(
            f"backbone '{name}' expects images [B, {channels}, height, width], "
            f"but got {list(images.shape)}"
        )
    height, width = images.shape[2:]
    if height < min_size[0] or width < min_size[1]:
        raise ZooError(
            f"images have {height} x {width} pixels, but backbone '{name}' needs at least "
            f"{min_size[0]} x {min_size[1]}"
        )


@dataclass(frozen=True)
class AxisSize:
    """Size of a feature map along one axis.

    An input of ``pixels`` pixels gives ``count`` positions, and every further ``step`` pixels one
    more. Inputs smaller than ``min_size`` give no feature map.
    """

    min_size: int
    pixels: int
    count: int
    step: int

    def output_size(self, pixels: int) -> int:
        """Return the size of the feature map for an input of this size."""
        return self.count + (pixels - self.pixels) // self.step

    def input_size(self, outputs: int) -> int:
        """Return the smallest input size whose feature map has at least this size."""
        return max(self.min_size, self.pixels + (outputs - self.count) * self.step)


def infer_feature_size(backbone: Backbone, channels: int) -> tuple[AxisSize, AxisSize]:
    """Infer the height and width of a backbone's feature maps.

    Runs a copy of the backbone on the meta device. Convolutions and pools have a constant stride,
    so the feature map grows in constant steps.
    """
    probe = to_meta(backbone)
    failures: list[str] = []

    @cache
    def feature_size(height: int, width: int) -> tuple[int, int]:
        try:
            features = probe(torch.empty(1, channels, height, width, device="meta"))
            if features.dim() != 4:
                raise ZooError(
                    f"features have shape {list(features.shape)}, but [B, D, h, w] is expected"
                )
        except Exception as error:  # a third-party backbone may raise anything for a small image
            failures.append(str(error).partition("\n")[0])
            return 0, 0
        return features.shape[2], features.shape[3]

    valid = next((n for n in _powers_of_two() if feature_size(n, n)[0]), None)
    if valid is None:
        raise ZooError(
            f"backbone '{backbone.name}' computes no feature map for an image of "
            f"{MAX_PIXELS} x {MAX_PIXELS} pixels: {failures[-1]}"
        )
    smaller = range(1, valid)
    min_height = 1 + bisect_left(smaller, 1, key=lambda pixels: feature_size(pixels, valid)[0])
    min_width = 1 + bisect_left(smaller, 1, key=lambda pixels: feature_size(valid, pixels)[1])
    return (
        _fit_axis(backbone.name, min_height, valid, lambda pixels: feature_size(pixels, pixels)[0]),
        _fit_axis(backbone.name, min_width, valid, lambda pixels: feature_size(pixels, pixels)[1]),
    )


def _fit_axis(name: str, min_size: int, valid: int, output_size: Callable[[int], int]) -> AxisSize:
    def next_step(start: int) -> int:
        """Return the first size above ``start`` with a larger feature map."""
        count = output_size(start) + 1
        above = next((n for n in _powers_of_two() if output_size(start + n) >= count), None)
        if above is None:
            raise ZooError(
                f"backbone '{name}' computes feature maps of one size for images of any size"
            )
        return start + 1 + bisect_left(range(start + 1, start + above), count, key=output_size)

    pixels = next_step(valid)
    return AxisSize(min_size, pixels, output_size(pixels), next_step(pixels) - pixels)


def _powers_of_two() -> Iterator[int]:
    power = 1
    while power <= MAX_PIXELS:
        yield power
        power *= 2


def to_meta(module: nn.Module) -> nn.Module:
    """Return a copy on the meta device, in evaluation mode."""
    tensors = chain(module.parameters(), module.buffers())
    memo = {id(tensor): tensor.detach().to("meta") for tensor in tensors}
    return copy.deepcopy(module, memo).eval()
