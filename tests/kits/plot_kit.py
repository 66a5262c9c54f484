"""Plots of trainings as empty pictures: drawing takes half of the time of a short training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zoo.plotting import new_figure, write_png


def write_empty(figure: Any, path: Path, *, follow_links: bool = True) -> None:
    """Write an empty picture instead of the figure; replaces `write_png`."""
    write_png(new_figure(1, 1), path, follow_links=follow_links)
