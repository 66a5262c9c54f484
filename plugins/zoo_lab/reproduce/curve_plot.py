"""The plot of a reproduction that misses a target: results on the validation data by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from zoo_lab.plot.axis import Axis
from zoo_lab.plot.svg import GRID, INK, MUTED, Svg
from zoo_lab.reproduce.figures import format_target
from zoo_lab.reproduce.result import FigureResult, Reproduction, convert_unit

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 680, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, _WIDTH - 24, 62, _HEIGHT - 46
_COLOURS = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a")
_MARKED = 40
"""Curves of at most this many points show them."""
_START = 0.2
"""Part of the steps whose values do not extend the vertical axis, to show later ones in detail."""
_DASH = "6 4"


def plot_curves(result: Reproduction) -> str | None:
    """Return an SVG picture with a curve for each of the first five seeds.

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
    title = f"{result.name}: {_describe(key, unit)}"
    if len(result.seeds) > len(seeds):
        title += f"; {len(seeds)} of {len(result.seeds)} seeds"
    return _plot(title, curves, figure if comparable else None)


def _key(figure: FigureResult) -> str:
    """Return the key of the metric of a figure in the log."""
    return f"validation_{figure.value.partition('/')[2]}"


def _describe(key: str, unit: str) -> str:
    """Return the name of the vertical axis."""
    metric = key.removeprefix("validation_")
    name = f"error (1 − {metric})" if unit == "% error" else metric
    return f"{name} on the validation data{', %' if unit else ''}"


def _plot(title: str, curves: Mapping[int, Points], figure: FigureResult | None) -> str:
    target = _target(figure) if figure else None
    x = Axis([0, *(step for points in curves.values() for step, _ in points)], _LEFT, _RIGHT)
    y = Axis(_range(curves, target), _BOTTOM, _TOP)
    svg = Svg(_WIDTH, _HEIGHT, title)
    svg.text(12, 22, title, size=13)
    for tick in y.ticks:
        svg.line(_LEFT, y.place(tick), _RIGHT, y.place(tick), GRID)
        svg.text(_LEFT - 8, y.place(tick) + 4, f"{tick:g}", size=11, fill=MUTED, anchor="end")
    for tick in x.ticks:
        svg.line(x.place(tick), _BOTTOM, x.place(tick), _BOTTOM + 4, MUTED)
        svg.text(x.place(tick), _BOTTOM + 17, f"{tick:,g}", size=11, fill=MUTED, anchor="middle")
    svg.text((_LEFT + _RIGHT) / 2, _HEIGHT - 10, "step", size=11, fill=MUTED, anchor="middle")
    if target is not None:
        svg.line(_LEFT, y.place(target), _RIGHT, y.place(target), INK, width=1.2, dash=_DASH)
    svg.clip(_LEFT, _TOP - 1, _RIGHT - _LEFT, _BOTTOM - _TOP + 2)
    for points, colour in zip(curves.values(), _COLOURS, strict=False):
        places = [(x.place(step), y.place(value)) for step, value in points]
        svg.polyline(places, colour)
        for place in places if len(places) <= _MARKED else ():
            if _TOP <= place[1] <= _BOTTOM:
                svg.circle(*place, 2.2, colour)
    _draw_legend(svg, curves, figure)
    return svg.render()


def _target(figure: FigureResult) -> float | None:
    return figure.at_least if figure.at_most is None else figure.at_most


def _range(curves: Mapping[int, Points], target: float | None) -> list[float]:
    """Return the values that the vertical axis shows: those after the start, and the target."""
    points = [point for points in curves.values() for point in points]
    start = _START * max(step for step, _ in points)
    later = [value for step, value in points if step >= start]
    values = later if len(set(later)) > 1 else [value for _, value in points]
    return values if target is None else [*values, target]


def _draw_legend(svg: Svg, curves: Mapping[int, Points], figure: FigureResult | None) -> None:
    svg.text(12, 44, "seed", size=11, fill=MUTED)
    left = 44.0
    for seed, colour in zip(curves, _COLOURS, strict=False):
        svg.line(left, 40, left + 16, 40, colour, width=2)
        svg.text(left + 21, 44, str(seed), size=11)
        left += 44
    if figure:
        svg.line(left + 8, 40, left + 26, 40, INK, width=1.2, dash=_DASH)
        svg.text(left + 31, 44, f"target, {figure.label}: {format_target(figure)}", size=11)
