"""Graphs with the weights of their edges.

Notation: N nodes, E edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from zoo_inspect.heat_panel import MAP
from zoo_inspect.node_labels import MARGIN, SIZE, NodeLabels
from zoo_inspect.panels import FONT, Box, Panel, Ruler, line_height

MAX_NODES = 40
_ITERATIONS, _GRAVITY = 200, 0.6
_POINTS = 12.5
DIAMETER = _POINTS / 72
"""Diameter of a node, in inches."""
_CIRCLE = 0.065
"""Distance of the centres of two nodes that do not touch, as a share of the side."""


@dataclass(frozen=True)
class GraphPanel(Panel):
    """A drawn graph; an edge is as bright and wide as its weight.

    Args:
        edges: target and source of each edge [2, E].
        weights: [E].
        nodes: the nodes that are drawn.
        places: x and y of each of them from 0 to 1 [N, 2].
        labels: their texts.
        title: printed above.
    """

    edges: Tensor
    weights: Tensor
    nodes: Tensor
    places: NDArray[np.float64]
    labels: NodeLabels
    title: str

    def measure(self, ruler: Ruler) -> Box:
        side = self.labels.side
        over = max(0.0, ruler.width(self.title) - side)
        return Box(side, side, top=line_height() + 0.04, right=over)

    def draw(self, axes: Any, vmax: float) -> None:
        from matplotlib import colormaps

        at = {int(node): place for node, place in zip(self.nodes, self.places, strict=True)}
        colours = colormaps[MAP]
        order = self.weights.argsort().tolist()  # the strongest edges are drawn last
        for index in order:
            target, source = self.edges[:, index].tolist()
            if target == source:
                continue
            share = float(self.weights[index]) / max(vmax, 1e-9)
            style = {
                "color": colours(share),
                "linewidth": 0.4 + 1.6 * share,
                "shrinkA": _POINTS / 2,
            }
            arrow = {"arrowstyle": "-|>", "mutation_scale": 5, "shrinkB": _POINTS / 2, **style}
            axes.annotate("", xy=at[target], xytext=at[source], arrowprops=arrow)
        loops = {
            int(t): float(w) / max(vmax, 1e-9)
            for t, s, w in zip(*self.edges.tolist(), self.weights.tolist(), strict=True)
            if t == s
        }
        for (node, (x, y)), text in zip(at.items(), self.labels.circles, strict=True):
            face = colours(loops.get(node, 0.0))
            dark = sum(face[:3]) < 1.5
            circle = {"markersize": _POINTS, "markeredgecolor": "grey", "mew": 0.4, "zorder": 4}
            axes.plot(x, y, "o", color=face, **circle)
            size = min(SIZE, 1.45 * _POINTS / max(len(text), 1))  # inside the circle
            self._write(axes, text, x, y, size, "white" if dark else "black")
        for text, x, y in self.labels.beside:
            self._write(axes, text, x, y, SIZE, "black", halo=True)
        axes.set_xlim(-MARGIN, 1 + MARGIN)
        axes.set_ylim(-MARGIN, 1 + MARGIN)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_axis_off()
        axes.set_title(self.title, fontsize=FONT, loc="left", pad=2, parse_math=False)

    @staticmethod
    def _write(
        axes: Any, text: str, x: float, y: float, size: float, colour: str, *, halo: bool = False
    ) -> None:
        """Write a text around its centre, above edges; with a halo, they do not cross it."""
        from matplotlib.patheffects import withStroke

        effects = [withStroke(linewidth=1.4, foreground="white")] if halo else []
        style = {"ha": "center", "va": "center", "zorder": 5, "path_effects": effects}
        axes.text(x, y, text, fontsize=size, color=colour, parse_math=False, **style)


def choose_nodes(edges: Tensor, weights: Tensor, count: int = MAX_NODES) -> Tensor:
    """Return the nodes that are drawn: all, or those around the node with the most edges that are
    reached along the largest weights [E]."""
    nodes: Tensor = torch.unique(edges)
    if len(nodes) <= count:
        return nodes
    target, source = edges
    degree = torch.bincount(target)
    chosen = [int(degree.argmax())]
    for node in chosen:
        if len(chosen) >= count:
            break
        incoming = (target == node).nonzero()[:, 0]
        best = incoming[weights[incoming].argsort(descending=True)]
        new = dict.fromkeys(int(n) for n in source[best].tolist() if n not in chosen)
        chosen += list(new)[: count - len(chosen)]
    return torch.tensor(sorted(chosen))


def place_nodes(edges: Tensor, nodes: Tensor) -> NDArray[np.float64]:
    """Return x and y of each node from 0 to 1 [N, 2], neighbours close to each other.

    Fruchterman and Reingold 1991, with gravity, which keeps separate parts together; from a circle,
    so that the result is always the same.
    """
    N = len(nodes)
    index = {int(node): i for i, node in enumerate(nodes)}
    near = np.zeros((N, N))
    for target, source in edges.T.tolist():
        if target in index and source in index and target != source:
            near[index[target], index[source]] = near[index[source], index[target]] = 1
    angle = 2 * np.pi * np.arange(N) / max(N, 1)
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ideal = 1.6 / np.sqrt(max(N, 1))
    for step in range(_ITERATIONS if N > 2 else 0):
        offset = places[:, None] - places[None]
        distance = np.maximum(np.linalg.norm(offset, axis=-1), 0.01)
        force = ideal**2 / distance**2 - near * distance / ideal
        move = (offset * force[..., None]).sum(axis=1) - _GRAVITY * places
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-9)
        places = places + move / length * np.minimum(length, 0.2 * (1 - step / _ITERATIONS))
    low, high = places.min(axis=0), places.max(axis=0)
    return _separate((places - low) / np.maximum(high - low, 1e-9))


def _separate(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move nodes [N, 2] that are closer than their circles away from each other."""
    for _ in range(_ITERATIONS):
        offset = places[:, None] - places[None]
        distance = np.maximum(np.linalg.norm(offset, axis=-1, keepdims=True), 1e-6)
        missing = np.maximum(_CIRCLE - distance, 0)
        if not (missing[..., 0] - _CIRCLE * np.eye(len(places)) > 1e-3).any():
            break
        places = np.clip(places + (offset / distance * missing).sum(axis=1) / 2, 0, 1)
    return places
