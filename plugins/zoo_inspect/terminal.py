"""Views in the terminal.

Notation: H heads, T rows, S columns, E edges.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from rich.text import Text
from torch import Tensor

from zoo.heatmap import Heatmap, render_shades, render_text
from zoo_inspect.caption import describe_equation, distinct_equations
from zoo_inspect.heat_panel import pool
from zoo_inspect.image_panel import find_window
from zoo_inspect.layer_rows import head_titles
from zoo_inspect.plain_math import to_lines
from zoo_inspect.view import Axis, LayerView, View

_MAX_ROWS, _MAX_COLUMNS = 48, 64
_EDGES = 12


def render_view(view: View, width: int = 80) -> Iterator[Text]:
    """Yield the layers of a view as text, averaged over heads unless heads were chosen."""
    for layer in view.layers:
        for title, weights in _head_maps(view, layer):
            yield Text(f"\n{layer.path} ({layer.kind}){title}", style="bold")
            yield from _render_layer(view, layer, weights, width)
    for equation in distinct_equations(view):
        yield Text("\n" + describe_equation(equation), style="dim")
        yield Text("  " + "\n  ".join(to_lines(equation.text)))


def _head_maps(view: View, layer: LayerView) -> Iterator[tuple[str, Tensor]]:
    if view.provenance.get("heads") is None:
        H = len(layer.weights)
        yield f", mean of {H} heads" if H > 1 else "", layer.weights.mean(dim=0)
        return
    for title, weights in zip(head_titles(view, layer), layer.weights, strict=True):
        yield f", {title}", weights


def _render_layer(view: View, layer: LayerView, weights: Tensor, width: int) -> Iterator[Text]:
    if layer.kind == "edges" and view.edges is not None:
        yield from _render_edges(view.edges, weights)
    elif layer.kind == "ctc" and layer.chosen is not None:
        yield from _render_frames(layer, layer.chosen)
    elif layer.columns.grid is not None:
        yield from _render_images(layer, weights, layer.columns.grid)
    else:
        yield from _render_map(layer, weights, width)


def _render_map(layer: LayerView, weights: Tensor, width: int) -> Iterator[Text]:
    """Render weights [T, S]; several positions are one cell if there are too many."""
    T, S = weights.shape
    shape = min(T, _MAX_ROWS), min(S, _MAX_COLUMNS)
    if shape != (T, S):
        note = f"  {T} x {S} weights in {shape[0]} x {shape[1]} cells: "
        yield Text(note + "each is the maximum of several, and has the first label", style="dim")
    pooled = pool(weights, *shape)
    rows, columns = (
        _thin(axis, size) for axis, size in zip((layer.rows, layer.columns), shape, strict=True)
    )
    yield render_text(Heatmap(pooled, rows, columns), width)


def _thin(axis: Axis, size: int) -> list[str]:
    """Return the labels of pooled positions: the first of each."""
    total = len(axis.labels)
    return [axis.labels[i * total // size] for i in range(size)]


def _render_images(layer: LayerView, weights: Tensor, grid: tuple[int, int]) -> Iterator[Text]:
    height, width = grid
    cells = weights[:, -height * width :].reshape(-1, height, width)  # [T, h, w]
    if layer.kind == "glimpses":
        for label, step in zip(layer.rows.labels, cells, strict=True):
            x, y, w, h = find_window(step, height, width)
            place = f"x {x:5.1f}  y {y:5.1f}  size {w:.1f} x {h:.1f}"
            yield Text(f"  {layer.rows.name} {label:>3}  {place}")
        return
    if layer.kind == "self":
        yield Text("  attention to each part of the image, mean of all positions")
        yield render_shades(cells.mean(dim=0))
        return
    for label, each in zip(layer.rows.labels, cells, strict=True):
        yield Text(f"  {label}")
        yield render_shades(each)


def _render_edges(edges: Tensor, weights: Tensor) -> Iterator[Text]:
    """Yield the edges with the largest weights, without self-loops."""
    between = (edges[0] != edges[1]).nonzero()[:, 0]
    best = between[weights[between].argsort(descending=True)][:_EDGES]
    for index in best.tolist():
        target, source = edges[:, index].tolist()
        yield Text(f"  {target:>6} attends to {source:<6} {weights[index]:.3f}")


def _render_frames(layer: LayerView, chosen: Tensor) -> Iterator[Text]:
    """Yield the symbols of the path with their first frame, last frame and mean posterior."""
    runs = itertools.groupby(enumerate(chosen.tolist()), key=lambda pair: pair[1])
    for symbol, group in runs:
        frames = [frame for frame, _ in group]
        first, last = (layer.rows.labels[frame] for frame in (frames[0], frames[-1]))
        mean = float(layer.weights[0, frames, symbol].mean())
        yield Text(f"  {first:>8} to {last:<8} {layer.columns.labels[symbol]:<12} {mean:.3f}")


def other_layers(view: View, shown: Sequence[str]) -> list[str]:
    """Return the paths of the layers that are not shown."""
    return [layer.path for layer in view.layers if layer.path not in shown]
