"""Overlays of weights on images, and paths of glimpses.

Notation: G steps, H and W the height and the width of a grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from zoo_inspect.heat_panel import MAP
from zoo_inspect.panels import FONT, Box, Panel, Ruler, line_height

_LONGEST = 1.5
_PATH, _SMALL = "#d95f02", 5.0
_GREY = (0.299, 0.587, 0.114)


@dataclass(frozen=True)
class OverlayPanel(Panel):
    """An image in grey with weights over a grid as colour.

    Args:
        pixels: [height, width, 3] of uint8.
        weights: [H, W].
        title: printed above, such as the token that attends.
    """

    pixels: Tensor
    weights: Tensor
    title: str

    def measure(self, ruler: Ruler) -> Box:
        return _image_box(self.pixels, self.title, ruler)

    def draw(self, axes: Any, vmax: float) -> None:
        extent = _draw_image(self.pixels, axes)
        shares = (self.weights / max(vmax, 1e-9)).clamp(0, 1)
        axes.imshow(
            self.weights.numpy(),
            cmap=MAP,
            vmin=0.0,
            vmax=vmax,
            alpha=(0.15 + 0.7 * shares).numpy(),
            interpolation="none",
            extent=extent,
        )
        axes.set_title(self.title, fontsize=FONT, loc="left", pad=2, parse_math=False)


@dataclass(frozen=True)
class GlimpsePanel(Panel):
    """The path of glimpses over an image, from a circle to a filled square, with the window of each
    step and its number.

    Args:
        pixels: [height, width, 3] of uint8.
        weights: [G, H, W], the share of each pixel in the window of a step.
    """

    pixels: Tensor
    weights: Tensor
    title: str

    def measure(self, ruler: Ruler) -> Box:
        return _image_box(self.pixels, self.title, ruler)

    def draw(self, axes: Any, vmax: float) -> None:
        from matplotlib import colormaps
        from matplotlib.patches import Rectangle

        height, width = self.pixels.shape[:2]
        _draw_image(self.pixels, axes)
        windows = [find_window(step, height, width) for step in self.weights]
        axes.plot([w[0] for w in windows], [w[1] for w in windows], color=_PATH, linewidth=0.7)
        colours = colormaps[MAP]
        for number, (x, y, w, h) in enumerate(windows, 1):
            colour = colours(0.3 + 0.7 * (number - 1) / max(len(windows) - 1, 1))
            corner = (x - w / 2, y - h / 2)
            axes.add_patch(Rectangle(corner, w, h, fill=False, edgecolor=colour, linewidth=0.8))
        place = {"color": _PATH, "markersize": 4.5, "markeredgewidth": 0.8, "zorder": 3}
        axes.plot(*windows[0][:2], marker="o", markerfacecolor="white", **place)
        axes.plot(*windows[-1][:2], marker="s", **place)
        for number, (x, y) in place_numbers(windows, height, width).items():
            style = {"fontsize": _SMALL, "ha": "center", "va": "center", "color": "white"}
            outline = {"boxstyle": "square,pad=0.1", "facecolor": "#000000aa", "linewidth": 0}
            axes.text(x, y, str(number), bbox=outline, **style)
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        axes.set_title(self.title, fontsize=FONT, loc="left", pad=2, parse_math=False)


def place_numbers(
    windows: Sequence[tuple[float, float, float, float]], height: int, width: int
) -> dict[int, tuple[float, float]]:
    """Return where the numbers of windows are written, from 1: in the first corner that is free and
    inside the image. A window without one has no number."""
    size = 1.6 * _SMALL / 72 / _LONGEST * max(height, width)
    places: dict[int, tuple[float, float]] = {}
    for number, (x, y, w, h) in enumerate(windows, 1):
        for right, below in ((-1, -1), (1, -1), (-1, 1), (1, 1)):
            at = x + right * (w - size) / 2, y + below * (h - size) / 2
            is_inside = (
                size / 2 <= at[0] <= width - size / 2 and size / 2 <= at[1] <= height - size / 2
            )
            if is_inside and all(math.dist(at, other) > 1.2 * size for other in places.values()):
                places[number] = at
                break
    return places


def find_window(weights: Tensor, height: int, width: int) -> tuple[float, float, float, float]:
    """Return the centre (x, y) and the size of the window of weights [H, W], in pixels.

    A uniform window of n cells has the standard deviation n / sqrt(12) on each axis.
    """
    H, W = weights.shape
    total = weights.sum().clamp(min=1e-9)
    centre, size = [], []
    for axis, cells, pixels in ((0, W, width), (1, H, height)):
        share = weights.sum(dim=axis) / total
        at = share.new_tensor([(i + 0.5) for i in range(cells)])
        mean = float((share * at).sum())
        # A cell is not a point: it has the variance 1 / 12.
        variance = float((share * (at - mean) ** 2).sum()) + 1 / 12
        centre.append(mean * pixels / cells)
        size.append((12 * variance) ** 0.5 * pixels / cells)
    return centre[0], centre[1], size[0], size[1]


def _image_box(pixels: Tensor, title: str, ruler: Ruler) -> Box:
    height, width = pixels.shape[:2]
    scale = _LONGEST / max(height, width)
    over = max(0.0, ruler.width(title) - width * scale)
    return Box(width * scale, height * scale, top=line_height() + 0.04, right=over)


def _draw_image(pixels: Tensor, axes: Any) -> tuple[int, int, int, int]:
    """Draw an image in grey and return its extent."""
    height, width = pixels.shape[:2]
    extent = (0, width, height, 0)
    grey = (pixels.float() * pixels.new_tensor(_GREY, dtype=pixels.float().dtype)).sum(-1)
    axes.imshow(
        grey.numpy(), cmap="gray", vmin=0, vmax=255, aspect="auto", extent=extent,
        interpolation="none",
    )  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    return extent
