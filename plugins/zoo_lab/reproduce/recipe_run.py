"""Runs recipes, seed by seed, and writes their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from zoo.errors import ZooError
from zoo.files import atomic_write, has_recorded_hash, record_hash
from zoo_lab.reproduce.data_check import check_data
from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.result import Reproduction, SeedResult, collect_figures
from zoo_lab.reproduce.seed_run import SeedOptions, SeedRun
from zoo_lab.reproduce.tokenizers import train_tokenizers

RESULT_FILE = "result.json"


def run_recipe(
    recipe: RecipeFile, output: Path, options: SeedOptions, seeds: Sequence[int] | None = None
) -> Iterator[Reproduction]:
    """Run the seeds of a recipe, and yield its results after each.

    The runs are in ``output/NAME/seed-SEED``; a seed with a result is not run again, unless another
    limit cut it short: its training is then continued. The results of all seeds so far are written
    to ``output/NAME.json``.

    Args:
        seeds: default: those of the recipe.

    Raises:
        DataError: if the data is missing or has another content.
        Interrupted: after SIGTERM or Ctrl-C, when a checkpoint has been saved; the same call
            continues.
        ZooError: if the folder has runs with other settings.
    """
    check_data(recipe.recipe.data)
    for evaluation in recipe.recipe.evaluate.values():
        for metric in evaluation.metrics:
            metric.build()  # a metric whose library is missing raises before the training
    folder = output / recipe.name
    overrides = train_tokenizers(recipe, folder)
    for seed in recipe.recipe.seeds if seeds is None else seeds:
        path = folder / f"seed-{seed}" / RESULT_FILE
        result = read_result(path)
        if result is not None and result.fingerprint != recipe.fingerprint:
            raise ZooError(
                f"{path.parent} has a run with other settings of recipe '{recipe.name}'; remove "
                "the folder, or use another one with -o FOLDER"
            )
        if result is None or not result.is_final(options.max_seconds, options.examples):
            result = SeedRun(recipe, seed, path.parent, overrides, options).run()
            path.parent.mkdir(parents=True, exist_ok=True)
            write_result(path, result)
        yield write_results(recipe, output)


def write_results(recipe: RecipeFile, output: Path) -> Reproduction:
    """Write the results of all seeds that were run to ``output/NAME.json``, and return them."""
    folder = output / recipe.name
    found = [read_result(path) for path in folder.glob(f"seed-*/{RESULT_FILE}")]
    seeds = [result for result in found if result and result.fingerprint == recipe.fingerprint]
    seeds.sort(key=lambda result: result.seed)
    source = recipe.recipe
    reproduction = Reproduction(
        name=recipe.name,
        plugin=recipe.plugin,
        description=source.description,
        paper=source.paper,
        data=check_data(source.data),
        differences=source.differences,
        planned_seeds=source.seeds,
        figures=collect_figures(source.figures, seeds),
        seeds=seeds,
    )
    write_text(output / f"{recipe.name}.json", reproduction.model_dump_json(indent=1))
    return reproduction


def read_result(path: Path) -> SeedResult | None:
    """Return the results of a seed; None if there is no file, or it is damaged or was changed.

    Files of previous versions have no recorded hash.
    """
    if not path.is_file() or has_recorded_hash(path) is False:
        return None
    try:
        return SeedResult.model_validate_json(path.read_bytes())
    except ValidationError:
        return None


def write_result(path: Path, result: SeedResult) -> None:
    """Write the results of a seed, and record their hash."""
    write_text(path, result.model_dump_json(indent=1))
    record_hash(path)


def write_text(path: Path, text: str) -> None:
    """Write a text and a final newline, atomically; a symbolic link is replaced."""
    with atomic_write(path, follow_links=False) as temporary:
        temporary.write_text(f"{text}\n", encoding="utf-8")
