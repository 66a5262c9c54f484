"""A small writer of SVG pictures."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

INK, MUTED, GRID = "#222222", "#666666", "#e2e2e2"
_FONT = "font-family='system-ui, sans-serif'"


class Svg:
    """Collects shapes; coordinates are pixels from the upper left corner."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self._head = (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' "
            f"width='{width:g}' height='{height:g}' role='img' {_FONT}>"
        )
        self._shapes = [f"<title>{escape(title)}</title>"]
        self.rectangle(0, 0, width, height, "#ffffff")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 12,
        fill: str = INK,
        anchor: str = "start",
    ) -> None:
        """Add a line of text; `anchor` is start, middle or end."""
        self._shapes.append(
            f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{fill}' "
            f"text-anchor='{anchor}'>{escape(text)}</text>"
        )

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        stroke: str,
        *,
        width: float = 1,
        dash: str = "",
    ) -> None:
        """Add a line; `dash` has the lengths of dashes and gaps: ``6 4``."""
        dashes = f" stroke-dasharray='{dash}'" if dash else ""
        self._shapes.append(
            f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{stroke}' "
            f"stroke-width='{width:g}'{dashes}/>"
        )

    def clip(self, x: float, y: float, width: float, height: float) -> None:
        """Set the rectangle outside of which polylines are not shown."""
        self._shapes.append("<clipPath id='clip'>")
        self.rectangle(x, y, width, height, INK)
        self._shapes.append("</clipPath>")

    def polyline(self, points: Iterable[tuple[float, float]], stroke: str) -> None:
        """Add lines from each point to the next, inside the rectangle of `clip`."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._shapes.append(
            f"<polyline points='{places}' fill='none' stroke='{stroke}' stroke-width='1.6' "
            f"stroke-linejoin='round' clip-path='url(#clip)'/>"
        )

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        self._shapes.append(
            f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' "
            f"fill='{fill}'/>"
        )

    def circle(self, x: float, y: float, radius: float, fill: str, *, opacity: float = 1) -> None:
        self._shapes.append(
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius:g}' fill='{fill}' "
            f"fill-opacity='{opacity:g}'/>"
        )

    def render(self) -> str:
        """Return the picture."""
        return "\n".join([self._head, *self._shapes, "</svg>"]) + "\n"
