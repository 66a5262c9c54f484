"""The texts of the nodes of a drawn graph: in their circles, beside them, or below the picture.

Lengths are in inches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zoo_inspect.panels import Ruler, line_height

SIZE = 5.5
"""Size of the font, and of short texts in circles."""
SIDES = (3.2, 4.4, 5.6)
"""The sides of a drawing: the next one if the texts beside the nodes do not fit."""
MARGIN = 0.06
"""Space around the nodes, as a share of the range of their places."""
_IN_CIRCLE = 5
_BESIDE, _LISTED = 22, 40
"""Largest number of characters of a text in a circle, beside it, and below the picture."""
_SEPARATOR = " · "
_NUMBERS = "The number of a node is its place in the graph, from 0."

Rectangle = tuple[float, float, float, float]
"""Left, bottom, right and top."""


@dataclass(frozen=True)
class NodeLabels:
    """The texts of the nodes that are drawn.

    Args:
        circles: the text in the circle of each node.
        beside: the text beside each node, and the place of its centre, from 0 to 1.
        note: printed below the picture.
        side: the side of the drawing.
    """

    circles: Sequence[str]
    beside: Sequence[tuple[str, float, float]] = ()
    note: str = ""
    side: float = SIDES[0]


def label_nodes(
    names: Sequence[str],
    nodes: Sequence[int],
    places: NDArray[np.float64],
    diameter: float,
    ruler: Ruler,
) -> NodeLabels:
    """Return the texts of nodes.

    A short name is in the circle, with what follows " · " beside it, such as the class. Otherwise
    the circle has the number, and the name is beside it; all names are below the picture if there
    is no room for one.

    Args:
        names: the names of all nodes of the graph.
        nodes: the nodes that are drawn.
        places: their x and y from 0 to 1 [N, 2].
        diameter: that of a circle.
    """
    circles, others = zip(*(_split(names[node], node) for node in nodes), strict=True)
    note = _NUMBERS if circles == tuple(map(str, nodes)) else ""
    if not any(others):
        return NodeLabels(circles, note=note)
    texts = [shorten(other, _BESIDE) for other in others]
    for side in SIDES:
        beside = _place(texts, places, diameter, side, ruler)
        if beside is not None:
            return NodeLabels(circles, beside, note, side)
    pairs = zip(circles, others, strict=True)
    listed = "; ".join(f"{circle} {shorten(other, _LISTED)}" for circle, other in pairs if other)
    return NodeLabels(circles, note=f"Nodes: {listed}")


def shorten(text: str, max_chars: int) -> str:
    """Return a text of at most so many characters, with an ellipsis at its end if it is longer."""
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"


def _split(name: str, node: int) -> tuple[str, str]:
    """Return the text in the circle of a node, and the text beside it."""
    head, _, tail = name.partition(_SEPARATOR)
    return (head, tail) if len(head) <= _IN_CIRCLE else (str(node), name)


def _place(
    texts: Sequence[str],
    places: NDArray[np.float64],
    diameter: float,
    side: float,
    ruler: Ruler,
) -> list[tuple[str, float, float]] | None:
    """Return the centre of each text beside its node; None if one of them has no room."""
    scale = side / (1 + 2 * MARGIN)
    centres = (places + MARGIN) * scale
    radius = diameter / 2
    taken = [(x - radius, y - radius, x + radius, y + radius) for x, y in centres.tolist()]
    found = []
    for text, (x, y) in zip(texts, centres.tolist(), strict=True):
        if not text:
            continue
        width, height = ruler.width(text, SIZE) + 0.02, line_height(SIZE)
        for dx, dy in _offsets(radius, width, height):
            box = (
                x + dx - width / 2,
                y + dy - height / 2,
                x + dx + width / 2,
                y + dy + height / 2,
            )
            inside = min(box) >= 0 and max(box) <= side
            if inside and not any(_overlap(box, other) for other in taken):
                break
        else:
            return None
        taken.append(box)
        found.append((text, (x + dx) / scale - MARGIN, (y + dy) / scale - MARGIN))
    return found


def _offsets(radius: float, width: float, height: float) -> Iterator[tuple[float, float]]:
    """Yield the places of the centre of a text around a node, the best first."""
    x, y = radius + width / 2, radius + height / 2
    yield from ((x, 0), (-x, 0), (0, -y), (0, y))
    for dy in (-height, height, -y, y):
        yield from ((width / 2, dy), (-width / 2, dy)) if abs(dy) == y else ((x, dy), (-x, dy))


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
