"""Panels of a picture and where they are placed, in inches, so that no labels overlap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zoo.plotting import missing_glyphs, new_figure

FONT = 7.0
GAP = 0.18
_LINE = 1.35
"""Height of a line, in sizes of the font."""


@dataclass(frozen=True)
class Box:
    """The size of a panel and of the margins around it, for its labels."""

    width: float
    height: float
    left: float = 0.0
    top: float = 0.0
    right: float = 0.0
    bottom: float = 0.0


class Ruler:
    """Measures texts as matplotlib draws them."""

    def __init__(self) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self._figure = new_figure(1, 1, layout=None)
        canvas: Any = FigureCanvasAgg(self._figure)
        self._renderer = canvas.get_renderer()
        self._known: dict[tuple[str, float, bool], tuple[float, float]] = {}

    def size(self, text: str, size: float = FONT, *, math: bool = False) -> tuple[float, float]:
        """Return width and height of a text in inches."""
        key = (text, size, math)
        if key not in self._known:
            drawn = self._figure.text(0, 0, text, fontsize=size, parse_math=math)
            with missing_glyphs():
                box, dpi = drawn.get_window_extent(self._renderer), float(self._figure.dpi)
            drawn.remove()
            self._known[key] = (float(box.width) / dpi, float(box.height) / dpi)
        return self._known[key]

    def width(self, text: str, size: float = FONT) -> float:
        """Return the width of a text in inches, without equations."""
        return self.size(text, size)[0]

    def widest(self, texts: Sequence[str], size: float = FONT) -> float:
        """Return the width of the widest text."""
        # The width grows with the number of characters, so only the longest are measured.
        longest = sorted(set(texts), key=len)[-8:]
        return max((self.width(text, size) for text in longest), default=0.0)


class Panel(ABC):
    """A part of a picture with its own axes."""

    @abstractmethod
    def measure(self, ruler: Ruler) -> Box:
        """Return the size of the panel."""

    @abstractmethod
    def draw(self, axes: Any, vmax: float) -> None:
        """Draw on axes of the size of the panel; `vmax` is the value of the brightest colour."""


def line_height(size: float = FONT) -> float:
    """Return the height of a line of text in inches."""
    return _LINE * size / 72
