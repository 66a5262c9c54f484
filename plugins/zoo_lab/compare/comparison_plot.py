"""The plot of a comparison: quality with spread, speed, memory and parameters of each variant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from zoo_lab.compare.comparison_result import StudyResult, VariantResult
from zoo_lab.plot.axis import Axis
from zoo_lab.plot.svg import GRID, INK, MUTED, Svg

_LABELS, _QUALITY, _BAR, _GAP = 190, 330, 120, 36
_ROW, _HEADER, _TOP = 22, 30, 64
_BLUE, _ORANGE, _GREY = "#1f77b4", "#d95f02", "#9aa5b1"

Measure = Callable[[VariantResult], float | None]
_BARS: Sequence[tuple[str, Measure, Callable[[float], str]]] = (
    ("{}/s", lambda variant: variant.tokens_per_second, lambda value: _short(value)),
    ("peak memory", lambda variant: variant.peak_memory, lambda value: f"{value / 1e6:,.0f} MB"),
    ("parameters", lambda variant: variant.parameters, lambda value: _short(value)),
)


def plot_comparison(comparison: StudyResult) -> str:
    """Return an SVG picture with a row for each variant, the base of each group first.

    Small circles are the seeds, a large one with a bar their mean and standard deviation. It is a
    ring if a limit stopped runs of the variant.
    """
    rows = sum(len(group.rows) for group in comparison.groups)
    height = _TOP + _HEADER * len(comparison.groups) + _ROW * rows + 16
    width = _LABELS + _QUALITY + len(_BARS) * (_BAR + _GAP) + 60
    svg = Svg(width, height, f"Comparison: {comparison.title}")
    svg.text(8, 20, comparison.title, size=15)
    scale = _quality_axis(comparison)
    direction = "lower is better" if comparison.lower_is_better else "higher is better"
    svg.text(_LABELS, 40, f"{comparison.quality} ({direction})", fill=MUTED)
    for tick in scale.ticks:
        x = scale.place(tick)
        svg.line(x, _TOP - 4, x, height - 12, GRID)
        svg.text(x, _TOP - 8, f"{tick:g}", size=10, fill=MUTED, anchor="middle")
    for index, (name, _, _) in enumerate(_BARS):
        svg.text(_bar_left(index), 40, name.format(comparison.speed), fill=MUTED)
    y = float(_TOP)
    for group in comparison.groups:
        svg.text(8, y + 20, group.title or group.name, size=12, fill=MUTED)
        y += _HEADER
        for number, (label, name) in enumerate(group.rows.items()):
            colour = _ORANGE if number == 0 else _BLUE
            _draw_row(
                svg, comparison, comparison.variants[name], label, y + _ROW / 2, scale, colour
            )
            y += _ROW
    return svg.render()


def _quality_axis(comparison: StudyResult) -> Axis:
    ends = []
    for variant in comparison.variants.values():
        if variant.quality is not None:
            spread = variant.quality.spread or 0.0
            ends += [*variant.quality.by_seed.values()]
            ends += [variant.quality.mean - spread, variant.quality.mean + spread]
    return Axis(ends, _LABELS, _LABELS + _QUALITY)


def _draw_row(
    svg: Svg,
    comparison: StudyResult,
    variant: VariantResult,
    label: str,
    y: float,
    scale: Axis,
    colour: str,
) -> None:
    svg.text(_LABELS - 12, y + 4, label, anchor="end")
    quality = variant.quality
    if quality is None or not math.isfinite(quality.mean):
        state = "failed" if variant.errors else "not finite" if variant.seeds else "not run yet"
        svg.text(_LABELS + 4, y + 4, state, size=11, fill=MUTED)
        return
    for value in quality.by_seed.values():
        svg.circle(scale.place(value), y, 2.5, colour, opacity=0.4)
    mean, spread = scale.place(quality.mean), quality.spread
    if spread is not None:
        ends = scale.place(quality.mean - spread), scale.place(quality.mean + spread)
        svg.line(ends[0], y, ends[1], y, colour, width=2)
    svg.circle(mean, y, 4.5, colour)
    if variant.stopped:
        svg.circle(mean, y, 2.5, "white")
    for index, (_, measure, describe) in enumerate(_BARS):
        values = [measure(other) for other in comparison.variants.values()]
        largest = max((value for value in values if value is not None), default=0)
        found = measure(variant)
        if found is not None and largest > 0:
            length = _BAR * 0.6 * found / largest
            svg.rectangle(_bar_left(index), y - 6, length, 12, _GREY)
            svg.text(_bar_left(index) + length + 5, y + 4, describe(found), size=10, fill=INK)


def _bar_left(index: int) -> float:
    return _LABELS + _QUALITY + _GAP + index * (_BAR + _GAP)


def _short(value: float) -> str:
    """Return a number with three digits: ``1.23 M``."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
