"""Tables of a comparison: for the terminal, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io

from zoo_lab.compare.comparison_result import GroupResult, StudyResult, VariantResult
from zoo_lab.reproduce.figures import format_figure
from zoo_lab.reproduce.markdown import markdown_table

MISSING = "–"
NOT_RUN = "not run yet"
CSV_COLUMNS = (
    "group",
    "variant",
    "seed",
    "quality",
    "validation",
    "parameters",
    "tokens_per_second",
    "peak_memory",
    "steps",
    "training_seconds",
    "cut",
    "error",
)


def table_columns(comparison: StudyResult) -> tuple[str, ...]:
    """Return the headers of a table of a group."""
    unit = f", {comparison.unit}" if comparison.unit == "%" else ""
    quality = f"{comparison.quality}{unit}"
    validation = () if comparison.quality == comparison.validation else (comparison.validation,)
    return (
        "variant",
        quality,
        *validation,
        *comparison.metrics,
        "parameters",
        f"{comparison.speed}/s",
        "peak memory",
        "seeds",
    )


def table_rows(comparison: StudyResult, group: GroupResult) -> list[tuple[str, ...]]:
    """Return the cells of each variant of a group, the base first."""
    return [
        (label, *_cells(comparison, comparison.variants[name]))
        for label, name in group.rows.items()
    ]


def _cells(comparison: StudyResult, variant: VariantResult) -> tuple[str, ...]:
    asked = len(comparison.planned_seeds)
    seeds = f"{len(variant.seeds)} of {asked}"
    if not variant.seeds:
        state = f"failed: {_first_line(variant)}" if variant.errors else NOT_RUN
        return (state, *[MISSING] * (len(table_columns(comparison)) - 3), seeds)
    if variant.errors:
        seeds += f" ({len(variant.errors)} failed)"
    if variant.stopped:
        seeds += f", {variant.stopped} cut short"
    metrics = {figure.label: figure for figure in variant.metrics}
    figures = [variant.quality]
    figures += [] if comparison.quality == comparison.validation else [variant.validation]
    figures += [metrics.get(label) for label in comparison.metrics]
    return (
        *(format_figure(figure) if figure else MISSING for figure in figures),
        MISSING if variant.parameters is None else f"{variant.parameters:,}",
        MISSING if variant.tokens_per_second is None else f"{variant.tokens_per_second:,.0f}",
        MISSING if variant.peak_memory is None else f"{variant.peak_memory / 1e6:,.0f} MB",
        seeds,
    )


def _first_line(variant: VariantResult) -> str:
    """Return the first line of an error, or the last one of a traceback."""
    lines = next(iter(variant.errors.values())).splitlines() or [""]
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


def format_markdown(comparison: StudyResult) -> str:
    """Return a table for each group."""
    lines = [f"# {comparison.title}"]
    for group in comparison.groups:
        lines += ["", f"## {group.title or group.name}", ""]
        lines += markdown_table(table_columns(comparison), table_rows(comparison, group))
    return "\n".join(lines) + "\n"


def format_csv(comparison: StudyResult) -> str:
    """Return a row for each run; the last columns are further values on the validation data."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*CSV_COLUMNS, *comparison.metrics])
    for group in comparison.groups:
        for label, name in group.rows.items():
            variant = comparison.variants[name]
            for seed in variant.seeds:
                figures = [
                    None if figure is None else figure.by_seed.get(seed.seed)
                    for figure in (variant.quality, variant.validation)
                ]
                measured = [seed.parameters, seed.tokens_per_second, seed.peak_memory]
                budget = [seed.steps, seed.training_seconds, "; ".join(seed.shortened)]
                metrics = {each.label: each.by_seed.get(seed.seed) for each in variant.metrics}
                more = [metrics.get(name) for name in comparison.metrics]
                row = [group.name, label, seed.seed, *figures, *measured, *budget, "", *more]
                writer.writerow(row)
            for number, error in variant.errors.items():
                writer.writerow([group.name, label, number, *[""] * 8, error])
    return text.getvalue()
