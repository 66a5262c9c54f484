"""What a comparison shows, in sentences made from its results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from zoo_lab.compare.comparison_result import GroupResult, StudyResult, VariantResult
from zoo_lab.reproduce.figures import format_figure, format_number
from zoo_lab.reproduce.result import FigureResult


def summarise(comparison: StudyResult, group: GroupResult) -> Iterator[str]:
    """Yield sentences about a group: the best variant, and how the others differ from the base.

    The best variant is selected on the validation data. A difference of the quality is called
    larger than the spread if it exceeds the standard deviations of both variants together. Runs
    that a time limit stopped are not compared with others.
    """
    finite = {
        label: variant
        for label, name in group.rows.items()
        if (variant := comparison.variants[name]).quality
        and variant.validation
        and math.isfinite(variant.validation.mean)
    }
    stopped = [label for label, variant in finite.items() if variant.stopped]
    measured = {label: variant for label, variant in finite.items() if label not in stopped}
    if measured:
        yield from _compare_with_base(comparison, measured, next(iter(group.rows)))
    if stopped:
        yield f"Stopped by the time limit in one run or more, so not compared: {_names(stopped)}."


def _compare_with_base(
    comparison: StudyResult, measured: dict[str, VariantResult], base: str
) -> Iterator[str]:
    count = max(len(variant.seeds) for variant in measured.values())
    complete = {
        label: variant for label, variant in measured.items() if len(variant.seeds) == count
    }
    if len(complete) > 1 or len(measured) == 1:
        best = _best(comparison, complete)
        quality = complete[best].quality
        assert quality is not None
        yield (
            f"Best on the validation data, of those with {count} seeds: `{best}`, with "
            f"{comparison.quality} {format_figure(quality)}."
        )
    if base not in measured:
        return
    differences = {
        label: (variant.quality, measured[base].quality)
        for label, variant in measured.items()
        if label != base
    }
    sides: dict[str, list[str]] = {"better": [], "worse": [], "unclear": []}
    for label, (own, other) in differences.items():
        assert own is not None
        assert other is not None
        sides[compare(own, other, lower=comparison.lower_is_better)].append(label)
    for side in ("better", "worse"):
        if sides[side]:
            listed = ", ".join(
                f"`{label}` ({_difference(*differences[label])})" for label in sides[side]
            )
            yield f"{side.capitalize()} than `{base}` by more than the spread: {listed}."
    if sides["unclear"]:
        yield f"Within the spread, or with too few seeds: {_names(sides['unclear'])}."


def compare(own: FigureResult, other: FigureResult, *, lower: bool) -> str:
    """Return ``better`` or ``worse``, or ``unclear`` if the difference is within the spread."""
    if own.spread is None or other.spread is None:
        return "unclear"
    difference = own.mean - other.mean
    if not abs(difference) > own.spread + other.spread:
        return "unclear"
    return "better" if (difference < 0) == lower else "worse"


def _names(labels: Iterable[str]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


def _best(comparison: StudyResult, variants: dict[str, VariantResult]) -> str:
    """Return the best variant on the validation data."""
    means = {
        label: variant.validation.mean for label, variant in variants.items() if variant.validation
    }
    choose = min if comparison.validation_lower_is_better else max
    return choose(means, key=lambda label: means[label])


def _difference(own: FigureResult | None, other: FigureResult | None) -> str:
    assert own is not None
    assert other is not None
    difference = own.mean - other.mean
    return f"{'+' if difference >= 0 else '−'}{format_number(abs(difference))}"
