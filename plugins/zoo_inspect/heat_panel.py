"""Heat maps as panels: with the labels of positions, or as thumbnails.

Notation: T rows, S columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from zoo_inspect.panels import FONT, Box, Panel, Ruler, line_height

MAP = "cividis"
"""Colours that differ in lightness for all readers."""
_CELL, _LARGEST = 0.14, 9.0
_THUMBNAIL, _POOLED = 1.1, 128
_SHORTEST = 0.35
_COMMON, _OUTLIER = 0.99, 4.0
"""The share of cells that set the scale of a thumbnail, and how much larger others are then."""


@dataclass(frozen=True)
class HeatPanel(Panel):
    """A heat map of weights [T, S].

    Args:
        rows, columns: the labels of the positions.
        names: what rows and columns are.
        title: printed above.
        is_thumbnail: whether to draw it small, pooled and without labels.
        path: the row of each column that a line connects [S]; None without a line.
        vmax: the value of the brightest colour, if the panel has its own.
    """

    weights: Tensor
    rows: Sequence[str]
    columns: Sequence[str]
    names: tuple[str, str]
    title: str = ""
    is_thumbnail: bool = False
    path: Tensor | None = None
    vmax: float | None = None

    def measure(self, ruler: Ruler) -> Box:
        T, S = self.weights.shape
        title = line_height() if self.title else 0.0
        if self.is_thumbnail:
            longest = max(T, S)
            width, height = (max(_THUMBNAIL * n / longest, _SHORTEST) for n in (S, T))
            over = max(0.0, ruler.width(self.title) - width)
            return Box(width, height, top=title + 0.04, right=over)
        width, height = _panel_size(T, S)
        columns = line_height() if self._is_upright else ruler.widest(self.columns)
        above = columns + line_height() + 0.1
        left = ruler.widest(self.rows) + line_height() + 0.15
        over = max(0.0, ruler.width(self.title) - width, ruler.width(self.names[1]) - width)
        tall = max(0.0, ruler.width(self.names[0]) - height)
        return Box(width, height, left, above + title, over, tall)

    @property
    def _is_upright(self) -> bool:
        """Whether the labels of columns are not rotated: they have one character each."""
        return max(map(len, self.columns), default=0) == 1

    def draw(self, axes: Any, vmax: float) -> None:
        T, S = self.weights.shape
        weights = pool(self.weights, _POOLED, _POOLED) if self.is_thumbnail else self.weights
        axes.imshow(
            weights.numpy(),
            cmap=MAP,
            vmin=0.0,
            vmax=self.vmax or vmax,
            aspect="auto",
            interpolation="none",
            extent=(-0.5, S - 0.5, T - 0.5, -0.5),
        )
        if self.path is not None:
            axes.plot(range(S), self.path.tolist(), color="white", linewidth=1.6)
            axes.plot(range(S), self.path.tolist(), color="#d95f02", linewidth=0.8)
        axes.set_title(self.title, fontsize=FONT, loc="left", pad=2, parse_math=False)
        if self.is_thumbnail:
            axes.set_xticks([])
            axes.set_yticks([])
            return
        self._label(axes)

    def _label(self, axes: Any) -> None:
        (T, S), style = self.weights.shape, {"fontsize": FONT, "parse_math": False}
        width, height = _panel_size(T, S)
        every_x = math.ceil(0.9 * line_height() / (width / S))
        every_y = math.ceil(0.9 * line_height() / (height / T))
        rotation = 0 if self._is_upright else 90
        # "▁", the start of a word, looks like a tick if it is rotated.
        columns, rows = ([each.replace("▁", "·") for each in x] for x in (self.columns, self.rows))
        axes.set_xticks(range(0, S, every_x), columns[::every_x], rotation=rotation, **style)
        axes.set_yticks(range(0, T, every_y), rows[::every_y], **style)
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.tick_params(length=1.5, pad=1.5, width=0.4)
        axes.set_xlabel(self.names[1], fontsize=FONT, loc="left", labelpad=2)
        axes.set_ylabel(self.names[0], fontsize=FONT, loc="top", labelpad=2)


def _panel_size(T: int, S: int) -> tuple[float, float]:
    """Return width and height of a heat map with labels."""
    width, height = (min(max(n * _CELL, _SHORTEST), _LARGEST) for n in (S, T))
    return width, height


def thumbnail_scale(weights: Tensor) -> tuple[float, str]:
    """Return the value of the brightest colour of the thumbnail of weights [T, S], and its text.

    A few cells that are much larger than all others do not set it, so that the others are not dark.
    """
    pooled = pool(weights, _POOLED, _POOLED).flatten()
    top, common = float(pooled.max()), float(pooled.quantile(_COMMON))
    if common * _OUTLIER < top and common > 0:
        return common, f"max. ≥ {common:.2g}"
    return top or 1.0, f"max. {top or 1.0:.2g}"


def pool(weights: Tensor, rows: int, columns: int) -> Tensor:
    """Return weights [T, S] pooled to at most rows x columns, with the maximum of each part."""
    shape = (min(weights.shape[0], rows), min(weights.shape[1], columns))
    if shape == weights.shape:
        return weights
    return F.adaptive_max_pool2d(weights[None, None], shape)[0, 0]
