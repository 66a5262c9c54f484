"""Pictures of digits with numbered glimpses, in the terminal and as a PNG file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from zoo.errors import MissingExtra
from zoo.files import atomic_write
from zoo.plotting import new_figure, write_png
from zoo_demo.glimpses import Digit

_MARGIN = 2
"""Empty pixels at each edge, which are left out in the terminal."""
_INK = 96
_BLOCKS = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
_COLUMNS = 5


def render_digit(digit: Digit) -> Text:
    """Render a digit in block characters, two pixels each, with the numbers of the glimpses.

    If the character of a glimpse is taken by an earlier one, the number is next to it.
    """
    ink = digit.image[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN] >= _INK
    height, width = ink.shape
    numbers: dict[tuple[int, int], str] = {}
    for number, (x, y) in enumerate(digit.locations, 1):
        row = min(max(int((y - _MARGIN) // 2), 0), height // 2 - 1)
        column = min(max(int(x - _MARGIN), 0), width - 1)
        while (row, column) in numbers:
            column = (column + 1) % width
        numbers[row, column] = str(number % 10)
    text = Text()
    for row in range(height // 2):
        for column in range(width):
            upper, lower = ink[2 * row, column], ink[2 * row + 1, column]
            if (row, column) in numbers:
                text.append(numbers[row, column], style="bold black on yellow")
            else:
                text.append(_BLOCKS[bool(upper), bool(lower)])
        text.append("\n")
    return text


def save_image(digit: Digit, path: Path) -> None:
    """Save the image of a digit as a PNG file, atomically; needs pillow."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("saving images", library="pillow", extra="view") from None
    with atomic_write(path) as temp_path:
        Image.fromarray(digit.image).save(temp_path, format="PNG")


def save_glimpses(digits: Sequence[Digit], path: Path, *, title: str) -> None:
    """Save the digits with their glimpses as a PNG file, atomically; needs matplotlib."""
    rows = -(-len(digits) // _COLUMNS)
    figure = new_figure(1.9 * min(len(digits), _COLUMNS), 0.4 + 2.1 * rows)
    axes = figure.subplots(rows, min(len(digits), _COLUMNS), squeeze=False).flatten()
    for digit, panel in zip(digits, axes, strict=False):
        _draw(digit, panel)
    for panel in axes:
        panel.set_axis_off()
    figure.suptitle(title, fontsize=10)
    write_png(figure, path)


def _draw(digit: Digit, axes: Any) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    height, width = digit.image.shape
    axes.imshow(digit.image, cmap="gray_r", extent=(0, width, height, 0))
    colours = colormaps["plasma"]
    axes.plot(*zip(*digit.locations, strict=True), color="grey", linewidth=0.8)
    for number, (x, y) in enumerate(digit.locations, 1):
        colour = colours(0.85 * (number - 1) / max(len(digit.locations) - 1, 1))
        if digit.size:
            corner = (x - digit.size / 2, y - digit.size / 2)
            axes.add_patch(Rectangle(corner, digit.size, digit.size, fill=False, edgecolor=colour))
        box = {"boxstyle": "circle,pad=0.15", "facecolor": colour, "edgecolor": "none"}
        axes.text(x, y, str(number), color="white", fontsize=7, ha="center", va="center", bbox=box)
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    prediction = digit.prediction
    title = f"{prediction.label} ({prediction.probability:.0%})"
    axes.set_title(title, fontsize=9, color="black" if digit.is_correct else "red")
