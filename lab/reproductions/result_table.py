"""The table of all recipes: their figures, the paper's, the own targets and the results."""

import json
from collections.abc import Iterator

from committed_results import FOLDER
from intervals import interval
from recipe_section import format_minutes

from zoo_lab.reproduce.figures import (
    format_interval,
    format_mean,
    format_number,
    format_target,
    reaches_published,
)
from zoo_lab.reproduce.markdown import markdown_row
from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.result import Reproduction

_REACHED = "paper's figure reached|own target reached"
COLUMNS = f"recipe|figure|paper's figure|own target|result|{_REACHED}|seeds|time".split("|")
NOT_RUN = "not run yet"
ONE_ROLLOUT = FOLDER / "one_rollout.json"
PUBLISHED_RAM = {4: 1.12, 6: 1.07, 8: 1.22}
"""Test errors of RAM on MNIST in percent, by number of glimpses: Mnih et al. 2014, conference
version."""
ARXIV_RAM = "1.29 % for 6 (arXiv version)"


def table_rows(recipe: RecipeFile, result: Reproduction | None) -> Iterator[str]:
    """Yield the rows of a recipe, with the label and the paper's figure that it has now."""
    name = f"[`{recipe.name}`](#{recipe.name})"
    if result is None:
        yield from _rows_without_result(recipe, name)
        return
    time = format_minutes(sum(seed.seconds for seed in result.seeds))
    measured = json.loads(ONE_ROLLOUT.read_text(encoding="utf-8"))
    if recipe.name in measured:
        assert recipe.spec is not None
        glimpses = recipe.spec.data["model"]["glimpses"]
        yield markdown_row([name, *_one_rollout(glimpses, **measured[recipe.name]), "1", ""])
        name = ""
    claims = {figure.value: figure for figure in recipe.recipe.figures}
    for figure in result.figures:
        claim = claims.get(figure.value, figure)
        cells = [name, claim.label, claim.published, format_target(figure)]
        cells.append(format_mean(figure) + interval(recipe, figure))
        cells.append(_yes_or_no(reaches_published(figure, claim.published)))
        cells.append(_yes_or_no(figure.reached))
        yield markdown_row([*cells, str(len(figure.by_seed)), time])
        name = time = ""


def _rows_without_result(recipe: RecipeFile, name: str) -> Iterator[str]:
    figures = recipe.recipe.figures
    for figure in [f for f in figures if format_target(f)] or figures[:1]:
        cells = [name, figure.label, figure.published, format_target(figure), NOT_RUN]
        yield markdown_row([*cells, "", "", "", ""])
        name = ""


def _one_rollout(glimpses: int, command: str, items: int, error: float) -> list[str]:
    """Return the cells of a model that is evaluated as in the paper, with one rollout."""
    label = f"error, one rollout of {glimpses} glimpses, shipped model (`{command}`)"
    errors, numbers = (
        " / ".join(map(str, each)) for each in (PUBLISHED_RAM.values(), PUBLISHED_RAM)
    )
    source = "conference version; quoted, not checked"
    published = f"{errors} % for {numbers} glimpses ({source}); {ARXIV_RAM}"
    result = f"{format_number(error)} % error{format_interval(error, items)}"
    return [label, published, "", result, _yes_or_no(error <= PUBLISHED_RAM[glimpses]), ""]


def _yes_or_no(reached: bool | None) -> str:
    return {None: "", True: "yes", False: "no"}[reached]
