"""Pictures of views with matplotlib, for PNG and SVG files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from zoo.errors import truncate
from zoo.plotting import new_figure
from zoo_inspect.caption import Line, caption_lines, wrap
from zoo_inspect.heat_panel import MAP
from zoo_inspect.layer_rows import PanelRow, layer_rows
from zoo_inspect.panels import FONT, GAP, Box, Panel, Ruler, line_height
from zoo_inspect.view import View

_MARGIN, _BAR = 0.15, 0.55
_MAX_WIDTH, _MAX_AREA = 15.0, 240.0
_TITLE = 9.0


def draw_view(view: View) -> Any:
    """Return a figure with the layers of a view below each other, and their equations.

    Heat maps that do not fit with their labels are thumbnails; choose layers and heads with
    `select_layers` for the full resolution.
    """
    ruler = Ruler()
    rows = [row for layer in view.layers for row in layer_rows(view, layer, is_thumbnail=False)]
    if _area(rows, ruler) > _MAX_AREA:
        rows = [row for layer in view.layers for row in layer_rows(view, layer, is_thumbnail=True)]
    rows = [part for row in rows for part in _wrap(row, ruler)]
    return _place(rows, _find_title(view), view, ruler)


def _area(rows: Sequence[PanelRow], ruler: Ruler) -> float:
    return sum(
        (box.left + box.width + box.right) * (box.top + box.height + box.bottom)
        for row in rows
        for box in row.measure(ruler)
    )


def _wrap(row: PanelRow, ruler: Ruler) -> Iterator[PanelRow]:
    """Yield the row, broken where it is wider than a page."""
    panels: list[Panel] = []
    width = 0.0
    for panel, box in zip(row.panels, row.measure(ruler), strict=True):
        own = box.left + box.width + box.right + GAP
        if panels and width + own > _MAX_WIDTH:
            yield PanelRow(row.title, panels, row.vmax)
            panels, width = [], 0.0
        panels.append(panel)
        width += own
    yield PanelRow(row.title, panels, row.vmax, row.note)


def _find_title(view: View) -> str:
    values = " ".join(str(value) for value in view.inputs.values() if isinstance(value, str))
    parts = [f"{view.model}: {truncate(values, 80)}" if values else view.model]
    if view.output is not None:
        parts.append(truncate(view.output, 80))
    return " → ".join(parts)


def _place(rows: Sequence[PanelRow], title: str, view: View, ruler: Ruler) -> Any:
    """Return the figure with all panels, bars and texts at their places."""
    boxes = [row.measure(ruler) for row in rows]
    widths = [sum(b.left + b.width + b.right + GAP for b in row) + _BAR for row in boxes]
    width = max(*widths, *(ruler.width(row.title) for row in rows), 4.5)
    heading = list(wrap(title, width, ruler, _TITLE))
    width = max(width, *(ruler.width(line, _TITLE) for line in heading))
    lines = caption_lines(view, width, ruler)
    notes = [list(wrap(row.note, width, ruler)) if row.note else [] for row in rows]
    heights = [
        max(b.top for b in row) + max(b.height + b.bottom for b in row) + line_height() + GAP
        for row in boxes
    ]
    below = sum(line.height for line in lines)
    below += sum(len(note) for note in notes) * line_height()
    above = len(heading) * line_height(_TITLE)
    total = sum(heights) + below + above + 3 * _MARGIN
    page = (width + 2 * _MARGIN, total)
    figure = new_figure(*page, layout=None)
    for number, line in enumerate(heading):
        _write(figure, page, _MARGIN, _MARGIN + number * line_height(_TITLE), line, _TITLE)
    y = _MARGIN + above + 0.05
    for row, row_boxes, height, note in zip(rows, boxes, heights, notes, strict=True):
        _write(figure, page, _MARGIN, y, row.title, FONT, weight="bold")
        _draw_row(figure, page, y + line_height(), row, row_boxes)
        y += height
        for text in note:
            _write(figure, page, _MARGIN, y - GAP / 2, text, FONT, color="#444444")
            y += line_height()
    _write_caption(figure, page, y + _MARGIN, lines)
    return figure


def _draw_row(
    figure: Any, page: tuple[float, float], y: float, row: PanelRow, boxes: Sequence[Box]
) -> None:
    x, top = _MARGIN, y + max(box.top for box in boxes)
    for panel, box in zip(row.panels, boxes, strict=True):
        axes = figure.add_axes(_rectangle(page, x + box.left, top, box.width, box.height))
        for edge in axes.spines.values():
            edge.set_linewidth(0.4)
        panel.draw(axes, row.vmax or 1.0)
        x += box.left + box.width + box.right + GAP
    _draw_bar(figure, page, x, top, min(max(box.height for box in boxes), 1.2), row.vmax)


def _draw_bar(
    figure: Any, page: tuple[float, float], x: float, y: float, height: float, vmax: float | None
) -> None:
    """Draw the colours from 0 to a value; the titles of panels have it if it is None."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    axes = figure.add_axes(_rectangle(page, x, y, 0.09, height))
    top = vmax or 1.0
    scale = ScalarMappable(Normalize(0.0, top), colormaps[MAP])
    bar = figure.colorbar(scale, cax=axes, ticks=[0.0, top])
    bar.ax.set_yticklabels(["0", "max." if vmax is None else f"{vmax:.2g}"], fontsize=FONT)
    bar.ax.tick_params(length=1.5, pad=1.5, width=0.4)
    bar.outline.set_linewidth(0.4)
    bar.solids.set_rasterized(True)  # an image in SVG


def _write_caption(figure: Any, page: tuple[float, float], y: float, lines: Sequence[Line]) -> None:
    for line in lines:
        style = {"parse_math": line.is_math, "color": "black" if line.is_math else "#444444"}
        _write(figure, page, _MARGIN, y, line.text, FONT, **style)
        y += line.height


def _write(
    figure: Any, page: tuple[float, float], x: float, y: float, text: str, size: float, **style: Any
) -> None:
    """Write a text whose top left corner is at x and y, from the top."""
    place = (x / page[0], 1 - y / page[1])
    figure.text(*place, text, fontsize=size, va="top", ha="left", **{"parse_math": False, **style})


def _rectangle(
    page: tuple[float, float], x: float, y: float, width: float, height: float
) -> tuple[float, float, float, float]:
    """Return a rectangle as fractions of the page, given its top left corner in inches."""
    W, H = page
    return x / W, 1 - (y + height) / H, width / W, height / H
