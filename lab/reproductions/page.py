"""Writes docs/reproductions.md and its plots from the results of `zoo reproduce`.

    python lab/reproductions/page.py

Every figure in its table is from the JSON files in lab/reproductions/results, which are those that
`zoo reproduce` writes to its output folder. Recipes without a result are listed as not run yet. A
recipe that misses a target has a plot in docs/curves and a section in lab/reproductions/tried.md;
others may have a section.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from committed_results import FOLDER, read_recipes, read_results
from intervals import explain_missing
from recipe_section import outcome_lines, section_lines
from result_table import COLUMNS, table_rows
from tried_settings import TRIED, read_tried

from zoo_lab.reproduce.curve_plot import plot_curves
from zoo_lab.reproduce.markdown import markdown_row
from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.result import Reproduction

ROOT = FOLDER.parents[1]
PAGE = ROOT / "docs" / "reproductions.md"
CURVES = ROOT / "docs" / "curves"
PICTURES = ROOT / "docs" / "pictures"

INTRODUCTION = f"""# Reproductions

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
  better.
- Figures that are proportions of test items have a 95 % interval of Wilson in brackets, for the
  mean over the seeds. It takes the items as independent, and does not include the variation between
  seeds. Other figures have no interval; a bootstrap needs the outputs for each test item, which are
  not kept:
{explain_missing()}
- A recipe that misses a target has a plot of the validation results by step, and a list of what was
  tried. The plot has the metric of the target, or the loss if the metric is not computed in the
  training; the first values can be outside of it. Recipes for which other settings were compared
  have such a list too. Its values are on the validation data if nothing else is stated. The results
  of other settings are in `lab/reproductions/variants`.
- An interrupted run is continued by the same command; a finished seed is not repeated. `--limit`
  ends the training of each run after some seconds, which is then stated.
"""


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
        lines += table_rows(recipe, results.get(recipe.name))
    for recipe in recipes:
        result = results.get(recipe.name)
        lines += ["", *section_lines(recipe, result)]
        if result:
            lines += ["", *outcome_lines(recipe, result, tried)]
    return "\n".join(lines) + "\n"


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
