"""The section of a recipe: what it is, which targets it misses, and its runs."""

from collections.abc import Iterator, Mapping

from zoo_lab.reproduce.curve_plot import plot_curves
from zoo_lab.reproduce.figures import format_mean, format_target
from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.result import Reproduction, SeedResult

CAPTIONS = {
    "draw-mnist": "64 images sampled from the trained model, which the run writes to `drawn.png`:",
}
"""Captions of the pictures in docs/pictures, by recipe."""
POINTS = 8


def section_lines(recipe: RecipeFile, result: Reproduction | None) -> Iterator[str]:
    source = recipe.recipe
    yield f"## {recipe.name}"
    yield ""
    data = f" Data: {', '.join(f'`{name}`' for name in source.data)}." if source.data else ""
    description = source.description[:1].upper() + source.description[1:]
    yield f"{description}. {source.paper}.{data}"
    differences = source.differences if result is None else result.differences
    if differences:
        yield ""
        yield "Differences from the paper:"
        yield ""
        yield from (f"- {text}" for text in differences)


def outcome_lines(
    recipe: RecipeFile, result: Reproduction, tried: Mapping[str, str]
) -> Iterator[str]:
    """Yield the targets that are not reached with plot and text, pictures, and the runs."""
    name = result.name
    targets = [figure for figure in result.figures if figure.reached is False]
    if targets:
        yield "Targets that are not reached:"
        yield ""
        for figure in targets:
            yield f"- {figure.label}: {format_target(figure)}; result: {format_mean(figure)}"
        yield ""
    if plot_curves(result):
        yield f"![Validation results of {name} by step](curves/{name}.svg)"
        yield ""
    if name in CAPTIONS:
        yield CAPTIONS[name]
        yield ""
        yield f"![Images of {name}](pictures/{name}.png)"
        yield ""
    if name in tried:
        yield "What was tried:"
        yield ""
        yield tried[name]
        yield ""
    yield "Runs:"
    yield ""
    if any(seed.fingerprint != recipe.fingerprint for seed in result.seeds):
        yield "- the recipe has changed since these runs; their commits have its settings"
    for text in result.shortened:
        yield f"- cut short: {text}"
    for seed in result.seeds[:3]:
        yield f"- {_describe(seed)}"
    if len(result.seeds) > 3:
        yield f"- {len(result.seeds) - 3} more seeds in `lab/reproductions/results/{name}.json`"
    curve = _curve(result.seeds[0])
    if curve:
        yield f"- {curve}"


def _describe(seed: SeedResult) -> str:
    """Return how a seed was run."""
    parts = [f"seed {seed.seed}: `{seed.command}`", str(seed.hardware["device"])]
    parts.append(f"torch {seed.versions['torch']}")
    if seed.commit:
        parts.append(f"commit {seed.commit[:12]}")
    if seed.parameters is not None:
        parts.append(f"{seed.parameters:,} parameters")
    if seed.steps is not None and seed.training_seconds is not None:
        parts.append(f"{seed.steps:,} steps in {format_minutes(seed.training_seconds)}")
    if seed.side_by_side > 1:
        others = seed.side_by_side - 1
        parts.append(f"beside {others} other run{'s' * (others > 1)} on the same device")
    return ", ".join(parts)


def _curve(seed: SeedResult) -> str:
    """Return some points of the first validation result by step."""
    names = [key for point in seed.curve for key in point if key.startswith("validation_")]
    if not names:
        return ""
    points = [(point["step"], point[names[0]]) for point in seed.curve if names[0] in point]
    shown = points[:: -(-len(points) // POINTS)]
    values = ", ".join(f"{value:.4g} ({step:,.0f})" for step, value in shown)
    label = names[0].removeprefix("validation_")
    return f"validation {label} by step, seed {seed.seed}: {values}"


def format_minutes(seconds: float) -> str:
    """Return a time in minutes, or in seconds if it is short."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
