"""How large a map a backbone makes of an image."""

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
"""Where the search for an image that is large enough ends."""


def validate_images(images: Tensor, name: str, *, channels: int, least: tuple[int, int]) -> None:
    """Raise unless these are images of so many channels, large enough for the backbone."""
    if images.dim() != 4 or images.shape[1] != channels:
        raise ZooError(
            f"backbone '{name}' reads images [B, {channels}, height, width], "
            f"not {list(images.shape)}"
        )
    height, width = images.shape[2:]
    if height < least[0] or width < least[1]:
        raise ZooError(
            f"images of {height} x {width} pixels are too small for backbone '{name}', "
            f"which needs at least {least[0]} x {least[1]}"
        )


@dataclass(frozen=True)
class AxisSize:
    """One side of a map: from ``pixels`` pixels on it has ``count`` places, and one more for
    every ``step`` pixels more; images of fewer than ``least`` give no map."""

    least: int
    pixels: int
    count: int
    step: int

    def places(self, pixels: int) -> int:
        """How long the map's side is if the image's is so many pixels."""
        return self.count + (pixels - self.pixels) // self.step

    def needed(self, places: int) -> int:
        """The least pixels that give at least so many places."""
        return max(self.least, self.pixels + (places - self.count) * self.step)


def infer_feature_size(backbone: Backbone, channels: int) -> tuple[AxisSize, AxisSize]:
    """Height and width of the maps a backbone makes, found without computing any.

    Windows that slide in equal steps make a map that grows in equal steps; a copy of the backbone
    on the meta device tells which.
    """
    probe = to_meta(backbone)
    failures: list[str] = []

    @cache
    def sides(height: int, width: int) -> tuple[int, int]:
        try:
            features = probe(torch.empty(1, channels, height, width, device="meta"))
            if features.dim() != 4:
                raise ZooError(f"features are {list(features.shape)}, not [B, D, h, w]")
        except Exception as error:  # whatever a stranger's backbone says of a small image
            failures.append(str(error).partition("\n")[0])
            return 0, 0
        return features.shape[2], features.shape[3]

    enough = next((n for n in _powers_of_two() if sides(n, n)[0]), None)
    if enough is None:
        raise ZooError(
            f"backbone '{backbone.name}' makes no map of an image of {MAX_PIXELS} x {MAX_PIXELS} pixels: "
            f"{failures[-1]}"
        )
    high = 1 + bisect_left(range(1, enough), 1, key=lambda pixels: sides(pixels, enough)[0])
    wide = 1 + bisect_left(range(1, enough), 1, key=lambda pixels: sides(enough, pixels)[1])
    return (
        _fit_axis(backbone.name, high, enough, lambda pixels: sides(pixels, pixels)[0]),
        _fit_axis(backbone.name, wide, enough, lambda pixels: sides(pixels, pixels)[1]),
    )


def _fit_axis(name: str, least: int, enough: int, places: Callable[[int], int]) -> AxisSize:
    def next_step(start: int) -> int:
        """The first pixels after the start that give another place."""
        count = places(start) + 1
        above = next((n for n in _powers_of_two() if places(start + n) >= count), None)
        if above is None:
            raise ZooError(f"backbone '{name}' makes maps of one size, whatever the image")
        return start + 1 + bisect_left(range(start + 1, start + above), count, key=places)

    pixels = next_step(enough)
    return AxisSize(least, pixels, places(pixels), next_step(pixels) - pixels)


def _powers_of_two() -> Iterator[int]:
    first = 1
    while first <= MAX_PIXELS:
        yield first
        first *= 2


def to_meta(module: nn.Module) -> nn.Module:
    """A copy on the meta device, in evaluation mode: it knows shapes and holds no numbers."""
    tensors = chain(module.parameters(), module.buffers())
    memo = {id(tensor): tensor.detach().to("meta") for tensor in tensors}
    return copy.deepcopy(module, memo).eval()
