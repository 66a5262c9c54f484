"""Heatmaps of attention weights, in the terminal and as PNG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text
from torch import Tensor

from zoo.errors import MissingExtra, ZooError
from zoo.files import atomic_write, os_error_message

_SHADES = " ░▒▓█"


def render_text(weights: Tensor, rows: Sequence[str], columns: Sequence[str]) -> Text:
    """Render weights [T, S] as shaded text, relative to the largest weight."""
    label = max(len(name) for name in rows)
    width = max(2, *(len(name) + 1 for name in columns))
    text = Text(" " * (label + 1) + "".join(f"{name:^{width}}" for name in columns) + "\n")
    peak = max(float(weights.max()), 1e-9)
    for name, line in zip(rows, weights.tolist(), strict=True):
        text.append(f"{name:>{label}} ")
        for value in line:
            shade = _SHADES[min(int(value / peak * len(_SHADES)), len(_SHADES) - 1)]
            text.append(shade * width, style="cyan")
        text.append("\n")
    return text


def save_png(
    weights: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    path: Path,
    *,
    title: str,
    xlabel: str = "source",
    ylabel: str = "output",
) -> None:
    """Save weights [T, S] as a PNG file, atomically; needs matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("saving a heatmap", library="matplotlib", extra="view") from None
    size = (1.8 + 0.42 * len(columns), 1.5 + 0.42 * len(rows))
    figure = Figure(figsize=size, dpi=160, layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(weights.numpy(), cmap="Blues", vmin=0.0, vmax=1.0)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.tick_params(length=0)
    for edge in axes.spines.values():
        edge.set_visible(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, label="weight")
    bar.outline.set_visible(False)
    figure.suptitle(title, fontsize=10)
    try:
        with atomic_write(path) as temp_path:
            figure.savefig(temp_path, format="png")
    except OSError as error:
        raise ZooError(f"{path} cannot be written: {os_error_message(error)}") from None
