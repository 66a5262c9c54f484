"""Writes docs/reproductions.md from the results of `zoo reproduce`.

    python reproductions/page.py

Every figure is from the JSON files in reproductions/results, which are those that `zoo reproduce`
writes to its output folder. Recipes without a result are listed as not run yet.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from zoo.registry.component_registry import default_registry
from zoo.reproduction.figures import format_figure, format_target
from zoo.reproduction.markdown import markdown_row
from zoo.reproduction.recipe_file import RecipeFile, read_recipe
from zoo.reproduction.result import Reproduction, SeedResult

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "reproductions" / "results"
PAGE = ROOT / "docs" / "reproductions.md"
NOT_RUN = "not run yet"
POINTS = 8

INTRODUCTION = """# Reproductions

This page is written by `python reproductions/page.py` from the files in `reproductions/results`,
which `zoo reproduce` writes. A recipe names the data, the spec and its training, the evaluation,
and what differs from the paper; it is a file in the folder `reproductions` of a plugin.

    zoo reproduce --list
    zoo reproduce gat-cora --data data          # one recipe, all seeds
    zoo reproduce --all --data data --jobs 7    # the whole table on a GPU, seven runs side by side

- The folder given with `--data` has a folder for each data set; default: the environment variable
  `ZOO_DATA`, or `../shared/data`. The files are compared with the checksums in `SHA256SUMS`.
- The checkpoint is selected on the validation data; the test data is evaluated once.
- Results are means and standard deviations over the seeds. Times are those of all seeds together.
- An interrupted run is continued by the same command; a finished seed is not repeated. `--limit`
  ends the training of each run after some seconds, which is then stated.
"""


def read_results(folder: Path = RESULTS) -> dict[str, Reproduction]:
    """Return the committed results by name."""
    found = [
        Reproduction.model_validate_json(file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("*.json"))
    ]
    return {result.name: result for result in found}


def read_recipes() -> list[RecipeFile]:
    """Return the recipes of all plugins; their specs are checked when they are run."""
    return [read_recipe(name, check=False) for name in sorted(default_registry().recipes)]


def render(results: Mapping[str, Reproduction], recipes: Sequence[RecipeFile]) -> str:
    """Return the page."""
    lines = [INTRODUCTION, "| recipe | figure | published | target | result | seeds | time |"]
    lines.append("|" + "---|" * 7)
    for recipe in recipes:
        lines += _rows(recipe, results.get(recipe.name))
    for recipe in recipes:
        lines += ["", *_section(recipe, results.get(recipe.name))]
    return "\n".join(lines) + "\n"


def _rows(recipe: RecipeFile, result: Reproduction | None) -> Iterator[str]:
    name = f"[`{recipe.name}`](#{recipe.name})"
    if result is None:
        figures = recipe.recipe.figures
        for figure in [f for f in figures if format_target(f)] or figures[:1]:
            cells = [name, figure.label, figure.published, format_target(figure), NOT_RUN]
            yield markdown_row([*cells, "", ""])
            name = ""
        return
    time = _minutes(sum(seed.seconds for seed in result.seeds))
    for figure in result.figures:
        cells = [name, figure.label, figure.published, format_target(figure)]
        yield markdown_row([*cells, format_figure(figure), str(len(figure.by_seed)), time])
        name = time = ""


def _section(recipe: RecipeFile, result: Reproduction | None) -> Iterator[str]:
    source = recipe.recipe
    yield f"## {recipe.name}"
    yield ""
    data = f" Data: {', '.join(f'`{name}`' for name in source.data)}." if source.data else ""
    yield f"{source.description}. {source.paper}.{data}"
    differences = source.differences if result is None else result.differences
    if differences:
        yield ""
        yield "Differences from the paper:"
        yield ""
        yield from (f"- {text}" for text in differences)
    if result is None:
        return
    yield ""
    for text in result.cut:
        yield f"- cut short: {text}"
    for seed in result.seeds[:3]:
        yield f"- {_describe(seed)}"
    if len(result.seeds) > 3:
        yield f"- {len(result.seeds) - 3} more seeds in `reproductions/results/{recipe.name}.json`"
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
        parts.append(f"{seed.steps:,} steps in {_minutes(seed.training_seconds)}")
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


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def write_page() -> None:
    """Write the page from the committed results."""
    PAGE.write_text(render(read_results(), read_recipes()), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    write_page()
