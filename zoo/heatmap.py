"""Heatmaps of attention weights, in the terminal and as PNG files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from torch import Tensor

from zoo.plotting import new_figure, write_png

_SHADES = " ░▒▓█"
_CELL = 2
"""Width of a column, which makes the cells about square."""
_MAX_LABEL = 32
"""Longer names are cut in the terminal."""


@dataclass(frozen=True)
class Heatmap:
    """Attention weights [T, S] with the names of rows and columns."""

    weights: Tensor
    rows: Sequence[str]
    columns: Sequence[str]
    title: str = ""


def render_text(heatmap: Heatmap, width: int = 80) -> Text:
    """Render weights as shaded text, relative to the largest weight.

    Names of columns with more than one letter have a line each. Columns that do not fit into the
    width are rendered below the others.
    """
    longest = min(_MAX_LABEL, width // 2 - 1)
    rows, columns = (
        [_shorten(name, longest) for name in names] for names in (heatmap.rows, heatmap.columns)
    )
    label = max(map(cell_len, rows)) + 1
    shares = heatmap.weights / heatmap.weights.max().clamp(min=1e-9)
    text = Text()
    for first, last in _blocks(columns, width - label):
        for line in _header(columns[first:last]):
            text.append(" " * label + line + "\n")
        for name, values in zip(rows, shares[:, first:last].tolist(), strict=True):
            text.append(" " * (label - 1 - cell_len(name)) + name + " ")
            text.append(_shade(values), style="cyan")
            text.append("\n")
    return text


def render_shades(weights: Tensor) -> Text:
    """Render weights [H, W] over an image as shaded text without labels."""
    shares = weights / weights.max().clamp(min=1e-9)
    lines = ("  " + _shade(row) for row in shares.tolist())
    return Text("\n".join(lines) + "\n", style="cyan")


def _shade(shares: Sequence[float]) -> str:
    shades = (_SHADES[min(int(v * len(_SHADES)), len(_SHADES) - 1)] for v in shares)
    return "".join(shade * _CELL for shade in shades)


def save_png(heatmaps: Sequence[Heatmap], path: Path, *, title: str) -> None:
    """Save heatmaps side by side as a PNG file, atomically; needs matplotlib."""
    figure = new_figure(
        sum(1.8 + 0.42 * len(each.columns) for each in heatmaps),
        1.5 + max(0.42 * len(each.rows) + 0.06 * _longest(each.columns) for each in heatmaps),
    )
    widths = [1.8 + 0.42 * len(each.columns) for each in heatmaps]
    axes = figure.subplots(1, len(heatmaps), width_ratios=widths, squeeze=False)[0]
    for each, panel in zip(heatmaps, axes, strict=True):
        image = _draw(each, panel)
    bar = figure.colorbar(image, ax=list(axes), shrink=0.8, label="weight")
    bar.outline.set_visible(False)
    figure.suptitle(title, fontsize=10, parse_math=False)
    write_png(figure, path)


def _draw(heatmap: Heatmap, axes: Any) -> Any:
    """Draw a heatmap and return its image."""
    image = axes.imshow(heatmap.weights.numpy(), cmap="Blues", vmin=0.0, vmax=1.0)
    literal: dict[str, Any] = {"parse_math": False}  # a word can contain $
    rotated = {"rotation": 60, "ha": "left", "rotation_mode": "anchor"}
    column_style = literal | (rotated if _longest(heatmap.columns) > 2 else {})
    axes.set_xticks(range(len(heatmap.columns)), heatmap.columns, **column_style)
    axes.set_yticks(range(len(heatmap.rows)), heatmap.rows, **literal)
    axes.xaxis.tick_top()
    axes.set_xlabel("source")
    axes.set_ylabel("output")
    axes.set_title(heatmap.title, fontsize=10)
    axes.set_anchor("N")
    axes.tick_params(length=0)
    for edge in axes.spines.values():
        edge.set_visible(False)
    return image


def _blocks(columns: Sequence[str], width: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last + 1 column of each block that fits into the width."""
    first = 0
    for last, name in enumerate(columns):
        if last > first and _CELL * (last - first) + max(cell_len(name), _CELL) > width:
            yield first, last
            first = last
    yield first, len(columns)


def _header(columns: Sequence[str]) -> Iterator[str]:
    """Yield the lines above the columns; each name starts above its column."""
    if max(map(cell_len, columns)) == 1:
        yield "".join(f"{name} " for name in columns)
        return
    for position, name in enumerate(columns):
        yield "│ " * position + name


def _shorten(name: str, longest: int) -> str:
    return name if cell_len(name) <= longest else set_cell_size(name, longest - 1) + "…"


def _longest(names: Sequence[str]) -> int:
    return max(map(len, names))
