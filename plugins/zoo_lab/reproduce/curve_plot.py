"""The plot of a reproduction that misses a target: results on the validation data by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from zoo.plotting import new_figure, render_svg, style_axes
from zoo_lab.reproduce.figures import format_target
from zoo_lab.reproduce.result import FigureResult, Reproduction, convert_unit

Points = Sequence[tuple[float, float]]

_COLOURS = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a")
_MARKED = 40
"""Curves of at most this many points show them."""
_START = 0.2
"""Part of the steps whose values do not extend the vertical axis, to show later ones in detail."""
_MARGIN = 0.05
"""Free space below and above the values, as a part of their range."""


def plot_curves(result: Reproduction) -> str | None:
    """Return the figure of `curve_figure` as SVG, or None if there is none."""
    figure = curve_figure(result)
    return None if figure is None else render_svg(figure)


def curve_figure(result: Reproduction) -> Any:
    """Return a figure with a curve for each of the first five seeds.

    The values are those of the first figure that is not reached, on the validation data, or the
    loss if the training does not compute its metric. The target is a dashed line, except for
    figures of other data, such as longer sequences, and for the loss. The first values can be
    outside of the picture. Returns None if all targets are reached, or if there are no values.
    """
    missed = [figure for figure in result.figures if figure.reached is False]
    seeds = result.seeds[: len(_COLOURS)]
    computed = {key for seed in seeds for point in seed.curve for key in point}
    figure = next((figure for figure in missed if _key(figure) in computed), None)
    key, unit = (_key(figure), figure.unit) if figure else ("validation_loss", "")
    curves = {
        seed.seed: [
            (point["step"], convert_unit(point[key], unit))
            for point in seed.curve
            if math.isfinite(point.get(key, math.nan))
        ]
        for seed in seeds
    }
    if not missed or not any(curves.values()):
        return None
    comparable = figure is not None and figure.value.startswith(("test/", "validation/"))
    name = (figure and figure.metric_label) or key.removeprefix("validation_")
    title = f"{result.name}: {_describe(name, unit)}"
    if len(result.seeds) > len(seeds):
        title += f"; {len(seeds)} of {len(result.seeds)} seeds"
    return _plot(title, curves, figure if comparable else None)


def _key(figure: FigureResult) -> str:
    """Return the key of the metric of a figure in the log."""
    return f"validation_{figure.value.partition('/')[2]}"


def _describe(metric: str, unit: str) -> str:
    """Return the name of the vertical axis."""
    name = f"error (1 − {metric})" if unit == "% error" else metric
    return f"{name} on the validation data{', %' if unit else ''}"


def _plot(title: str, curves: Mapping[int, Points], figure: FigureResult | None) -> Any:
    target = _target(figure) if figure else None
    picture = new_figure(8.6, 3.4, layout=None)
    axes = picture.subplots()
    picture.subplots_adjust(left=0.08, right=0.98, top=0.82, bottom=0.14)
    for (seed, points), colour in zip(curves.items(), _COLOURS, strict=False):
        steps, values = zip(*points, strict=True) if points else ((), ())
        marker = "o" if len(points) <= _MARKED else None
        axes.plot(steps, values, color=colour, marker=marker, markersize=3, label=f"seed {seed}")
    if figure and target is not None:
        label = f"target, {figure.label}: {format_target(figure)}"
        axes.axhline(target, color="#222222", linewidth=1, linestyle="--", label=label)
    shown = _range(curves, target)
    margin = _MARGIN * ((max(shown) - min(shown)) or 1)
    axes.set_ylim(min(shown) - margin, max(shown) + margin)
    axes.set_xlim(left=0)
    axes.set_xlabel("step")
    axes.xaxis.set_major_formatter("{x:,g}")
    style_axes(axes)
    picture.text(0.02, 0.93, title, fontsize=11, parse_math=False)
    picture.legend(
        loc="upper left",
        bbox_to_anchor=(0.01, 0.92),
        ncols=len(curves) + 1,
        frameon=False,
        fontsize=8,
        handlelength=1.4,
        columnspacing=1,
    )
    return picture


def _target(figure: FigureResult) -> float | None:
    return figure.at_least if figure.at_most is None else figure.at_most


def _range(curves: Mapping[int, Points], target: float | None) -> list[float]:
    """Return the values that the vertical axis shows: those after the start, and the target."""
    points = [point for points in curves.values() for point in points]
    start = _START * max(step for step, _ in points)
    later = [value for step, value in points if step >= start]
    values = later if len(set(later)) > 1 else [value for _, value in points]
    return values if target is None else [*values, target]
