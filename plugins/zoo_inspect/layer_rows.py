"""The panels of each layer of a view, by what it shows.

Notation: H heads, T rows, S columns, E edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from zoo_inspect.graph_panel import DIAMETER, GraphPanel, choose_nodes, place_nodes
from zoo_inspect.heat_panel import HeatPanel, thumbnail_scale
from zoo_inspect.image_panel import GlimpsePanel, OverlayPanel
from zoo_inspect.node_labels import label_nodes
from zoo_inspect.panels import Box, Panel, Ruler
from zoo_inspect.view import LayerView, View

_MAX_STEPS = 12
_MAX_SYMBOLS = 40


@dataclass(frozen=True)
class PanelRow:
    """Panels side by side with one scale of colours.

    Args:
        title: printed above.
        vmax: the value of the brightest colour; None if each panel has its own, in its title.
        note: printed below.
    """

    title: str
    panels: Sequence[Panel]
    vmax: float | None
    note: str = ""

    def measure(self, ruler: Ruler) -> list[Box]:
        return [panel.measure(ruler) for panel in self.panels]


def layer_rows(view: View, layer: LayerView, *, is_thumbnail: bool) -> Iterator[PanelRow]:
    """Yield the rows of a layer; heat maps are thumbnails if that is asked for."""
    title = f"{layer.path} ({layer.kind})"
    pixels = view.images.get(layer.columns.name)
    heads = head_titles(view, layer)
    if layer.kind == "edges" and view.edges is not None:
        yield _graph_row(view.edges, layer, heads, title)
    elif pixels is not None and layer.columns.grid is not None:
        yield from _image_rows(layer, pixels, heads, title)
    elif layer.kind == "ctc" and layer.chosen is not None:
        panel = _frame_panel(layer, layer.chosen, is_thumbnail=is_thumbnail)
        yield PanelRow(title, [panel], _largest(layer.weights))
    else:
        # The steps of a memory go from left to right, as on the page.
        is_swapped = layer.kind == "memory"
        rows, columns = (layer.columns, layer.rows) if is_swapped else (layer.rows, layer.columns)
        labels = list(rows.labels), list(columns.labels), (rows.name, columns.name)
        shown = layer.weights.mT if is_swapped else layer.weights
        pairs = list(zip(shown, heads, strict=True))
        if is_thumbnail:
            thumbnails = [_thumbnail(weights, labels, head) for weights, head in pairs]
            yield PanelRow(title, thumbnails, None)
            return
        panels = [HeatPanel(weights, *labels, head) for weights, head in pairs]
        yield PanelRow(title, panels, _largest(layer.weights))


def head_titles(view: View, layer: LayerView) -> list[str]:
    """Return the titles of the heads that a view has; "" for the only head of a layer."""
    chosen: Sequence[int] | None = view.provenance.get("heads")
    if chosen is None and len(layer.weights) == 1:
        return [""]
    return [f"head {number}" for number in chosen or range(1, len(layer.weights) + 1)]


def _largest(weights: Tensor) -> float:
    return float(weights.max()) if weights.numel() else 1.0


def _thumbnail(
    weights: Tensor, labels: tuple[list[str], list[str], tuple[str, str]], head: str
) -> HeatPanel:
    """Return the thumbnail of a head, with the largest value of its colours in the title."""
    vmax, text = thumbnail_scale(weights)
    title = f"{head}, {text}" if head else text
    return HeatPanel(weights, *labels, title, is_thumbnail=True, vmax=vmax)


def _frame_panel(layer: LayerView, chosen: Tensor, *, is_thumbnail: bool) -> Panel:
    """Return the posteriors of symbols over time, with the path of the output.

    The symbols are those of the path, and the most probable ones.
    """
    posteriors = layer.weights[0]
    best = posteriors.amax(dim=0).argsort(descending=True)[:_MAX_SYMBOLS].tolist()
    symbols = sorted({*chosen.tolist(), *best})
    return HeatPanel(
        posteriors[:, symbols].T,
        [layer.columns.labels[symbol] for symbol in symbols],
        list(layer.rows.labels),
        (layer.columns.name, layer.rows.name),
        "",
        is_thumbnail,
        chosen.new_tensor([symbols.index(symbol) for symbol in chosen.tolist()]),
    )


def _image_rows(
    layer: LayerView, pixels: Tensor, heads: Sequence[str], title: str
) -> Iterator[PanelRow]:
    assert layer.columns.grid is not None
    height, width = layer.columns.grid
    weights = layer.weights[..., -height * width :]
    cells = weights.reshape(*weights.shape[:2], height, width)  # [H, T, h, w]
    if layer.kind == "glimpses":
        yield _glimpse_row(layer, cells, pixels, heads, title)
    elif layer.kind == "self":
        has_extra = len(layer.rows.labels) > height * width
        name = f"from {layer.rows.labels[0]}" if has_extra else "mean of all positions"
        maps = cells[:, 0] if has_extra else cells.mean(dim=1)  # [H, h, w]
        panels = [OverlayPanel(pixels, *pair) for pair in zip(maps, heads, strict=True)]
        yield PanelRow(f"{title}, {name}", panels, _largest(maps))
    else:
        for each, head in zip(cells, heads, strict=True):
            pairs = zip(each, layer.rows.labels, strict=True)
            panels = [OverlayPanel(pixels, *pair) for pair in pairs]
            yield PanelRow(f"{title}, {head}" if head else title, panels, _largest(layer.weights))


def _glimpse_row(
    layer: LayerView, cells: Tensor, pixels: Tensor, heads: Sequence[str], title: str
) -> PanelRow:
    """Return the path of each head, and the windows of the steps, averaged over heads."""
    pairs = zip(cells, heads, strict=True)
    paths = [GlimpsePanel(pixels, each, f"{head} path".strip()) for each, head in pairs]
    mean = cells.mean(dim=0)  # [T, h, w]
    every = math.ceil(len(mean) / _MAX_STEPS)
    steps = [
        OverlayPanel(pixels, mean[t], f"{layer.rows.name} {layer.rows.labels[t]}")
        for t in range(0, len(mean), every)
    ]
    return PanelRow(title, [*paths, *steps], _largest(mean))


def _graph_row(edges: Tensor, layer: LayerView, heads: Sequence[str], title: str) -> PanelRow:
    nodes = choose_nodes(edges, layer.weights.mean(dim=0))
    inside = (edges[..., None] == nodes).any(dim=-1).all(dim=0)  # [E]
    places = place_nodes(edges[:, inside], nodes)
    names = layer.rows.labels
    if len(nodes) < len(names):
        title += f", {len(nodes)} of {len(names):,} nodes"
    labels = label_nodes(names, nodes.tolist(), places, DIAMETER, Ruler())
    panels = [
        GraphPanel(edges[:, inside], weights[inside], nodes, places, labels, head)
        for weights, head in zip(layer.weights, heads, strict=True)
    ]
    return PanelRow(title, panels, _largest(layer.weights[:, inside]), labels.note)
