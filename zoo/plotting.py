"""Pictures with matplotlib: new figures, axes without frames, PNG and SVG files."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from zoo.errors import MissingExtra, ZooError
from zoo.files import atomic_write, os_error_message

Layout = Literal["constrained", "tight"]
BLUE, ORANGE, GREY = "#1f77b4", "#d95f02", "#666666"
_GRID = "#e6e6e6"
# Text as text, and identifiers that do not depend on the process.
_SVG_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "zoo", "font.family": "sans-serif"}


def new_figure(width: float, height: float, *, layout: Layout | None = "constrained") -> Any:
    """Return an empty figure of matplotlib; sizes in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("saving a picture", library="matplotlib", extra="view") from None
    return Figure(figsize=(width, height), dpi=160, layout=layout)


def style_axes(axes: Any, *, grid: str = "both") -> None:
    """Show a grid behind the values, and no frame above and to the right."""
    axes.grid(True, axis=grid, color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


@contextmanager
def missing_glyphs() -> Iterator[None]:
    """Draw or measure characters that the font does not have as boxes, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def write_png(figure: Any, path: Path, *, follow_links: bool = True) -> None:
    """Write a figure as a PNG file, atomically; see `atomic_write`."""
    try:
        with atomic_write(path, follow_links=follow_links) as temp_path, missing_glyphs():
            figure.savefig(temp_path, format="png")
    except OSError as error:
        raise ZooError(f"{path} cannot be written: {os_error_message(error)}") from None


def render_svg(figure: Any, *, text_as_paths: bool = False) -> str:
    """Return a figure as SVG, the same text for the same figure.

    Args:
        text_as_paths: draw the outlines of letters, so that texts have their measured size in every
            viewer, and equations their symbols.
    """
    from matplotlib import rc_context

    file = io.StringIO()
    style = _SVG_STYLE | ({"svg.fonttype": "path"} if text_as_paths else {})
    with rc_context(style), missing_glyphs():
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    lines = (line.rstrip() for line in file.getvalue().splitlines())
    # Platforms differ in the last digits of coordinates; texts are not in tags.
    return re.sub("<[^>]*>", _round_numbers, "\n".join(lines)) + "\n"


def _round_numbers(tag: re.Match[str]) -> str:
    # The factor of the outlines of letters, 1 / 64, needs its digits.
    pattern = r"(?<!scale\()(?<!\d)\d+\.\d{3,}"
    return re.sub(pattern, lambda number: f"{float(number[0]):.2f}", tag[0])
