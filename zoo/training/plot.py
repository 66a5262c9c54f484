"""The plot of a log."""

from __future__ import annotations

from pathlib import Path


def plot_log(log: Path, target: Path, title: str) -> bool:
    """Save a plot of losses, results and learning rate; return False without matplotlib."""
    return False
