"""The plot of a comparison: quality with spread, speed, memory and parameters of each variant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from zoo.plotting import BLUE, GREY, ORANGE, new_figure, render_svg, style_axes
from zoo_lab.compare.comparison_result import StudyResult, VariantResult

_WIDTHS = (330, 120, 120, 120)
_ROW = 0.26
"""Height of a row in inches; the title of a group has a row too."""
_BAR = "#9aa5b1"

Measure = Callable[[VariantResult], float | None]
_BARS: Sequence[tuple[str, Measure, Callable[[float], str]]] = (
    ("{}/s", lambda variant: variant.tokens_per_second, lambda value: _short(value)),
    ("peak memory", lambda variant: variant.peak_memory, lambda value: f"{value / 1e6:,.0f} MB"),
    ("parameters", lambda variant: variant.parameters, lambda value: _short(value)),
)


def plot_comparison(comparison: StudyResult) -> str:
    """Return the figure of `comparison_figure` as SVG."""
    return render_svg(comparison_figure(comparison))


def comparison_figure(comparison: StudyResult) -> Any:
    """Return a figure with a row for each variant, the base of each group first.

    Small points are the seeds, a large one with a bar their mean and standard deviation. It is a
    ring if a limit stopped runs of the variant.
    """
    rows = sum(1 + len(group.rows) for group in comparison.groups)
    height = _ROW * rows + 1
    figure = new_figure(11, height, layout=None)
    axes: Sequence[Any] = figure.subplots(1, len(_WIDTHS), sharey=True, width_ratios=_WIDTHS)
    figure.subplots_adjust(
        left=0.19, right=0.98, bottom=0.1 / height, top=1 - 0.9 / height, wspace=0.25
    )
    figure.text(0.01, 1 - 0.3 / height, comparison.title, fontsize=13, parse_math=False)
    _set_headers(axes, comparison)
    labels: dict[int, str] = {}
    row = 0
    for group in comparison.groups:
        title = group.title or group.name
        axes[0].annotate(
            title,
            (0, row),
            xycoords=("axes fraction", "data"),
            xytext=(-140, 0),
            textcoords="offset points",
            color=GREY,
            va="center",
            annotation_clip=False,
            parse_math=False,
        )
        for number, (label, name) in enumerate(group.rows.items(), 1):
            variant, labels[row + number] = comparison.variants[name], label
            _draw_quality(axes[0], variant, row + number, ORANGE if number == 1 else BLUE)
            _draw_bars(axes[1:], comparison, variant, row + number)
        row += 1 + len(group.rows)
    axes[0].set_ylim(rows - 0.4, -0.6)
    axes[0].set_yticks(list(labels), list(labels.values()), parse_math=False)
    return figure


def _set_headers(axes: Sequence[Any], comparison: StudyResult) -> None:
    direction = "lower is better" if comparison.lower_is_better else "higher is better"
    headers = [f"{comparison.quality} ({direction})"]
    headers += [name.format(comparison.speed) for name, _, _ in _BARS]
    style_axes(axes[0], grid="x")
    axes[0].xaxis.tick_top()
    for panel, header in zip(axes, headers, strict=True):
        panel.set_title(header, loc="left", fontsize=9, color=GREY, parse_math=False)
        panel.tick_params(length=0, labelsize=9)
        for spine in panel.spines.values():
            spine.set_visible(False)
    for panel in axes[1:]:
        panel.set_xticks([])
        panel.set_xlim(0, 1.6)
        panel.tick_params(labelleft=False)


def _is_shown(variant: VariantResult) -> bool:
    return variant.quality is not None and math.isfinite(variant.quality.mean)


def _draw_quality(axes: Any, variant: VariantResult, row: int, colour: str) -> None:
    quality = variant.quality
    if quality is None or not _is_shown(variant):
        state = "failed" if variant.errors else "not finite" if variant.seeds else "not run yet"
        axes.text(0.01, row, state, transform=axes.get_yaxis_transform(), color=GREY, va="center")
        return
    seeds = list(quality.by_seed.values())
    axes.plot(seeds, [row] * len(seeds), "o", markersize=4, color=colour, alpha=0.4, gid="seeds")
    if quality.spread is not None:
        ends = (quality.mean - quality.spread, quality.mean + quality.spread)
        axes.plot(ends, (row, row), color=colour, linewidth=2, gid="spread")
    inside = "white" if variant.stopped else colour
    axes.plot(
        [quality.mean],
        [row],
        "o",
        markersize=7,
        color=colour,
        markerfacecolor=inside,
        markeredgewidth=2,
        gid="mean",
    )


def _draw_bars(
    panels: Sequence[Any], comparison: StudyResult, variant: VariantResult, row: int
) -> None:
    """Draw speed, memory and parameters, relative to the largest values."""
    for panel, (_, measure, describe) in zip(panels, _BARS, strict=True):
        values = [measure(other) for other in comparison.variants.values()]
        largest = max((value for value in values if value is not None), default=0)
        found = measure(variant) if _is_shown(variant) else None
        if found is not None and largest > 0:
            panel.barh(row, found / largest, height=0.55, color=_BAR)
            panel.text(found / largest + 0.04, row, describe(found), fontsize=8, va="center")


def _short(value: float) -> str:
    """Return a number with three digits: ``1.23 M``."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
