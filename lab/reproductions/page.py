"""Writes docs/reproductions.md and its plots from the results of `zoo reproduce`.

    python lab/reproductions/page.py

Every figure in its table is from the JSON files in lab/reproductions/results, which are those that
`zoo reproduce` writes to its output folder. Recipes without a result are listed as not run yet. A
recipe that misses a target has a plot in docs/curves and a section in lab/reproductions/tried.md;
others may have a section.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from zoo.registry.component_registry import default_registry
from zoo_lab.reproduce.curve_plot import plot_curves
from zoo_lab.reproduce.figures import (
    format_figure,
    format_interval,
    format_number,
    format_target,
    reaches_published,
)
from zoo_lab.reproduce.markdown import markdown_row
from zoo_lab.reproduce.recipe_file import RecipeFile, read_recipe
from zoo_lab.reproduce.result import FigureResult, Reproduction, SeedResult, convert_unit

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "lab" / "reproductions" / "results"
VARIANTS = ROOT / "lab" / "reproductions" / "variants"
TRIED = ROOT / "lab" / "reproductions" / "tried.md"
PAGE = ROOT / "docs" / "reproductions.md"
CURVES = ROOT / "docs" / "curves"
PICTURES = ROOT / "docs" / "pictures"
CAPTIONS = {
    "draw-mnist": "64 images sampled from the trained model, which the run writes to `drawn.png`:",
}
"""Captions of the pictures in docs/pictures, by recipe."""
ONE_ROLLOUT = ROOT / "lab" / "reproductions" / "one_rollout.json"
PUBLISHED_RAM = (
    "1.12 / 1.07 / 1.22 % for 4 / 6 / 8 glimpses (conference version; quoted, not checked); "
    "1.29 % for 6 (arXiv version)"
)
NOT_RUN = "not run yet"
_REACHED = "paper's figure reached|own target reached"
COLUMNS = f"recipe|figure|paper's figure|own target|result|{_REACHED}|seeds|time".split("|")
ITEMS = {
    **dict.fromkeys(("ram-mnist", "ram-mnist-7"), 10_000),
    **dict.fromkeys(("gat-cora", "gat-citeseer", "gat-pubmed"), 1_000),
}
"""Number of test items of recipes whose figure is a proportion of them."""
POINTS = 8

INTRODUCTION = """# Reproductions

This page is written by `python lab/reproductions/page.py` from the files in
`lab/reproductions/results`, which `zoo reproduce` writes. A recipe names the data, the spec and its
training, the evaluation, and what differs from the paper; it is a file in the folder
`reproductions` of a plugin.

    zoo reproduce --list
    zoo reproduce gat-cora --data data          # one recipe, all seeds
    zoo reproduce --all --data data --jobs 7    # the whole table on a GPU, seven runs side by side

- The folder given with `--data` has a folder for each data set; default: the environment variable
  `ZOO_DATA`, or `data`. The files are compared with the checksums in `SHA256SUMS`.
- The checkpoint is selected on the validation data; the test data is evaluated once in each run.
- Results are means and standard deviations over the seeds. Times are those of all seeds together.
  Most runs shared a GPU with others, so that a single run is faster; their sections state with how
  many.
- The paper's figure and the own target are compared separately: an own target can be below or above
  what the paper reports. The paper's figure is compared if the own target tells which direction is
  better. Figures that are proportions of few test items have a 95 % interval of Wilson in brackets,
  for the mean over the seeds; it does not include the variation between seeds.
- A recipe that misses a target has a plot of the validation results by step, and a list of what was
  tried. The plot has the metric of the target, or the loss if the metric is not computed in the
  training; the first values can be outside of it. Recipes for which other settings were compared
  have such a list too. Its values are on the validation data if nothing else is stated. The results
  of other settings are in `lab/reproductions/variants`.
- An interrupted run is continued by the same command; a finished seed is not repeated. `--limit`
  ends the training of each run after some seconds, which is then stated.
"""


def read_results(folder: Path = RESULTS) -> dict[str, Reproduction]:
    """Return the committed results by the name of their file, which is that of the recipe.

    Figures have the names of their metrics that the recipes have now.
    """
    found = {}
    known = default_registry().recipes
    for file in sorted(folder.glob("*.json")):
        result = Reproduction.model_validate_json(file.read_text(encoding="utf-8"))
        if result.name in known:
            recipe = read_recipe(result.name, check=False).recipe
            labels = {figure.value: figure.metric_label for figure in recipe.figures}
            for figure in result.figures:
                figure.metric_label = labels.get(figure.value)
        found[file.stem] = result
    return found


def read_recipes() -> list[RecipeFile]:
    """Return the recipes of all plugins; their specs are checked when they are run."""
    return [read_recipe(name, check=False) for name in sorted(default_registry().recipes)]


def read_tried(results: Mapping[str, Reproduction]) -> dict[str, str]:
    """Return what was tried, by recipe; names in braces are replaced by figures."""
    known = {**results, **read_results(VARIANTS)}
    text = re.sub(
        r"\{([a-z0-9-]+)(?: ([a-z]+))?(?: ([0-9]+))?\}",
        lambda found: quoted_figure(known[found[1]], found[2], int(found[3] or 0)),
        TRIED.read_text(encoding="utf-8"),
    )
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {name: part.strip() for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def quoted_figure(result: Reproduction, what: str | None, number: int) -> str:
    """Return a figure of a result: that of its first target, or of what is above a limit."""
    figure = next(figure for figure in result.figures if format_target(figure))
    if what == "test":
        return _mean(figure)
    if what == "seed":
        return _mean(figure.model_copy(update={"by_seed": {number: figure.by_seed[number]}}))
    if what == "above":
        return ", ".join(f.label for f in result.figures if f is not figure and f.mean > number)
    metric = figure.value.partition("/")[2]
    if f"validation/{metric}" not in result.seeds[0].values:
        metric, figure = "loss", figure.model_copy(update={"unit": ""})
    if what == "at":
        curve = result.seeds[0].curve
        values = {0: next(p for p in curve if p["step"] == number)[f"validation_{metric}"]}
    else:
        values = {seed.seed: seed.values[f"validation/{metric}"] for seed in result.seeds}
    by_seed = {seed: convert_unit(value, figure.unit) for seed, value in values.items()}
    return _mean(figure.model_copy(update={"by_seed": by_seed}))


def _mean(figure: FigureResult) -> str:
    """Return mean and spread of a figure without its target."""
    without_target = {"at_least": None, "at_most": None, "spread_at_most": None}
    return format_figure(figure.model_copy(update=without_target))


def missed(results: Mapping[str, Reproduction]) -> set[str]:
    """Return the recipes that miss a target."""
    return {
        name
        for name, result in results.items()
        if any(figure.reached is False for figure in result.figures)
    }


def render(
    results: Mapping[str, Reproduction],
    recipes: Sequence[RecipeFile],
    tried: Mapping[str, str],
) -> str:
    """Return the page; `tried` is what was tried, by recipe."""
    lines = [INTRODUCTION, markdown_row(COLUMNS), "|" + "---|" * len(COLUMNS)]
    for recipe in recipes:
        lines += _rows(recipe, results.get(recipe.name))
    for recipe in recipes:
        result = results.get(recipe.name)
        lines += ["", *_section(recipe, result)]
        if result:
            lines += ["", *_outcome(recipe, result, tried)]
    return "\n".join(lines) + "\n"


def _rows(recipe: RecipeFile, result: Reproduction | None) -> Iterator[str]:
    name = f"[`{recipe.name}`](#{recipe.name})"
    if result is None:
        figures = recipe.recipe.figures
        for figure in [f for f in figures if format_target(f)] or figures[:1]:
            cells = [name, figure.label, figure.published, format_target(figure), NOT_RUN]
            yield markdown_row([*cells, "", "", "", ""])
            name = ""
        return
    time = _minutes(sum(seed.seconds for seed in result.seeds))
    if recipe.name in (measured := json.loads(ONE_ROLLOUT.read_text(encoding="utf-8"))):
        yield markdown_row([name, *_one_rollout(**measured[recipe.name]), "1", ""])
        name = ""
    claims = {figure.value: figure for figure in recipe.recipe.figures}
    for figure in result.figures:
        claim = claims.get(figure.value, figure)  # label and published figure as they are now
        cells = [name, claim.label, claim.published, format_target(figure)]
        items = ITEMS.get(recipe.name)
        cells.append(_mean(figure) + (format_interval(figure.mean, items) if items else ""))
        cells += [
            _yes_or_no(reaches_published(figure, claim.published)),
            _yes_or_no(figure.reached),
        ]
        yield markdown_row([*cells, str(len(figure.by_seed)), time])
        name = time = ""


def _one_rollout(command: str, items: int, error: float) -> list[str]:
    """Return the cells of a model that is evaluated as in the paper, with one rollout."""
    label = f"error, one rollout of 6 glimpses, shipped model (`{command}`)"
    result = f"{format_number(error)} % error{format_interval(error, items)}"
    return [label, PUBLISHED_RAM, "", result, "no", ""]


def _yes_or_no(reached: bool | None) -> str:
    return {None: "", True: "yes", False: "no"}[reached]


def _section(recipe: RecipeFile, result: Reproduction | None) -> Iterator[str]:
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


def _outcome(recipe: RecipeFile, result: Reproduction, tried: Mapping[str, str]) -> Iterator[str]:
    """Yield the targets that are not reached with plot and text, pictures, and the runs."""
    name = result.name
    targets = [figure for figure in result.figures if figure.reached is False]
    if targets:
        yield "Targets that are not reached:"
        yield ""
        for figure in targets:
            yield f"- {figure.label}: {format_target(figure)}; result: {_mean(figure)}"
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
        parts.append(f"{seed.steps:,} steps in {_minutes(seed.training_seconds)}")
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


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def plots(results: Mapping[str, Reproduction]) -> dict[Path, str]:
    """Return the plots of the recipes that miss a target, by file."""
    pictures = {CURVES / f"{name}.svg": plot_curves(result) for name, result in results.items()}
    return {path: picture for path, picture in pictures.items() if picture}


def write_page() -> None:
    """Write the page and its plots from the committed results; remove other plots."""
    results = read_results()
    tried = read_tried(results)
    PAGE.write_text(render(results, read_recipes(), tried), encoding="utf-8")
    current = plots(results)
    CURVES.mkdir(exist_ok=True)
    for path in set(CURVES.glob("*.svg")) - set(current):
        path.unlink()
    for path, picture in current.items():
        path.write_text(picture, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)} and {len(current)} plots")
    for name in sorted(missed(results) - set(tried)):
        print(f"{name} misses a target: describe what was tried in {TRIED.relative_to(ROOT)}")


if __name__ == "__main__":
    write_page()
