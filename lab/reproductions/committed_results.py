"""The committed results of `zoo reproduce`, and the recipes."""

from pathlib import Path

from zoo.registry.component_registry import default_registry
from zoo_lab.reproduce.recipe_file import RecipeFile, read_recipe
from zoo_lab.reproduce.result import Reproduction

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
VARIANTS = FOLDER / "variants"


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
