"""The plot of a log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zoo.plotting import BLUE, GREY, ORANGE, new_figure, style_axes, write_png
from zoo.training.run_log import read_log

_PREFIX = "validation_"


def plot_log(log: Path, target: Path, title: str) -> None:
    """Save a plot of the losses, the results on the validation data, and the learning rate.

    Raises:
        ZooError: if matplotlib is not installed, or the file cannot be written.
    """
    entries = read_log(log)
    train = [entry for entry in entries if "loss" in entry]
    if not train:
        return
    results = _results(entries)
    metrics = [name for name in results if name != "loss"]
    rows = 2 + len(metrics)
    heights = [3, *([1.4] * len(metrics)), 1]
    figure = new_figure(7, 1.3 * sum(heights))
    axes: Sequence[Any] = figure.subplots(rows, 1, sharex=True, height_ratios=heights)
    steps = [entry["step"] for entry in train]
    losses = [entry["loss"] for entry in train]
    axes[0].plot(steps, losses, color=BLUE, label="training")
    if "loss" in results:
        _plot_results(axes[0], results["loss"], label="validation")
        axes[0].legend(frameon=False)
    _label(axes[0], "loss")
    axes[0].set_title(title, loc="left", fontsize=11)
    for axis, name in zip(axes[1:], metrics, strict=False):
        _plot_results(axis, results[name])
        _label(axis, name)
    axes[-1].plot(steps, [entry["lr"] for entry in train], color=GREY)
    axes[-1].set_ylim(bottom=0)
    axes[-1].ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    _label(axes[-1], "learning rate")
    axes[-1].set_xlabel("step")
    write_png(figure, target, follow_links=False)


def _results(entries: Sequence[dict[str, Any]]) -> dict[str, list[tuple[int, float]]]:
    """Return steps and values of each result on the validation data."""
    results: dict[str, list[tuple[int, float]]] = {}
    for entry in entries:
        for key, value in entry.items():
            if key.startswith(_PREFIX):
                results.setdefault(key.removeprefix(_PREFIX), []).append((entry["step"], value))
    return results


def _plot_results(axis: Any, points: list[tuple[int, float]], label: str = "") -> None:
    steps, values = zip(*points, strict=True)
    marker = "o" if len(points) <= 50 else None
    axis.plot(steps, values, color=ORANGE, marker=marker, markersize=3, label=label)


def _label(axis: Any, name: str) -> None:
    axis.set_ylabel(name)
    style_axes(axis)
