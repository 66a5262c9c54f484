"""``zoo reproduce``: train and evaluate published models as their recipes describe."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.output import JsonOption, print_json, print_rows
from zoo.cli.run_options import DeviceOption
from zoo_lab.run_options import DataOption, ExamplesOption, LimitOption

if TYPE_CHECKING:
    from zoo_lab.reproduce.recipe_file import RecipeFile
    from zoo_lab.reproduce.result import Reproduction
    from zoo_lab.reproduce.seed_run import SeedOptions
    from zoo_lab.reproduce.side_by_side import SeedTask

COLUMNS = ("name", "figure", "published", "target", "result", "seeds", "minutes")


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Recipes of plugins, or files; see --list."),
    ] = None,
    all_recipes: Annotated[bool, typer.Option("--all", help="Run all recipes.")] = False,
    list_recipes: Annotated[
        bool, typer.Option("--list", help="List the recipes; run nothing.")
    ] = False,
    seeds: Annotated[
        list[int] | None,
        typer.Option(
            "--seed", "--seeds", min=0, help="A seed in place of those of the recipe. Repeatable."
        ),
    ] = None,
    max_seconds: LimitOption = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of runs and results.")
    ] = Path("runs") / "reproductions",
    data: DataOption = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY.KEY=VALUE",
            help="Override a value of the recipe, for example spec.train.steps=20. Repeatable.",
        ),
    ] = None,
    examples: ExamplesOption = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Number of runs side by side, each in its own process.")
    ] = 1,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce published results: check the data, train, and evaluate the best checkpoint.

    A run that was interrupted is continued by the same command; a finished seed is not repeated.
    """
    from zoo.cli.progress import task_progress
    from zoo.cli.training_progress import TrainingProgress
    from zoo.registry.component_registry import default_registry
    from zoo_lab.bench.selection import find_device
    from zoo_lab.reproduce.data_check import set_data_folder
    from zoo_lab.reproduce.seed_run import SeedOptions
    from zoo_lab.reproduce.side_by_side import list_tasks

    set_data_folder(data)
    if bool(names) == all_recipes and not list_recipes:
        raise typer.BadParameter("expected NAMEs, --all or --list")
    chosen = names or sorted(default_registry().recipes)
    if list_recipes:
        recipes, failed = _read(chosen, (), check=False)
        _print_recipes(recipes, as_json)
        raise typer.Exit(int(failed))
    settings = [part for text in overrides or () for part in ("--set", text)]
    settings += [] if max_seconds is None else ["--limit", f"{max_seconds:.12g}"]
    settings += [] if examples is None else ["--examples", str(examples)]
    recipes, failed = _read(chosen, overrides or ())
    if jobs > 1:
        make_tasks = partial(
            list_tasks,
            output=output,
            seeds=seeds,
            settings=settings,
            device=device,
            max_seconds=max_seconds,
            examples=examples,
        )
        results, stopped = _run_side_by_side(recipes, output, make_tasks, jobs)
    else:
        selected = [part for seed in seeds or () for part in ("--seed", str(seed))]
        arguments = ["zoo", "reproduce", *(names or ["--all"]), *selected, *settings]
        bar = TrainingProgress(stderr=True)
        options = SeedOptions(
            find_device(device), shlex.join(arguments), max_seconds, examples, [bar], task_progress
        )
        results, stopped = _run(recipes, output, options, seeds)
    if as_json:
        print_json([result.model_dump() for result in results])
    elif results:
        print_rows(COLUMNS, [row for result in results for row in figure_rows(result)])
    if failed or stopped:
        raise typer.Exit(1)


def _read(
    names: Sequence[str], overrides: Sequence[str], *, check: bool = True
) -> tuple[list[RecipeFile], bool]:
    """Return the recipes, and whether one of them is not valid; the others are used."""
    from zoo.errors import SpecError
    from zoo_lab.reproduce.recipe_file import read_recipe

    recipes, failed = [], False
    for name in names:
        try:
            recipes.append(read_recipe(name, overrides=overrides, check=check))
        except SpecError as error:
            typer.echo(str(error), err=True)
            failed = True
    return recipes, failed


def _run(
    recipes: Sequence[RecipeFile],
    output: Path,
    options: SeedOptions,
    seeds: Sequence[int] | None,
) -> tuple[list[Reproduction], bool]:
    """Return the results, and whether a recipe failed; the others are run nevertheless."""
    from zoo.errors import ZooError
    from zoo.training.interruption import Interrupted
    from zoo_lab.reproduce.recipe_run import run_recipe

    results, failed = [], False
    for recipe in recipes:
        done: list[Reproduction] = []
        try:
            done += run_recipe(recipe, output, options, seeds)
        except Interrupted as stop:
            message = "stopped, and a checkpoint was saved; run the same command again to continue"
            typer.echo(f"{recipe.name}: {message}", err=True)
            raise typer.Exit(stop.exit_code) from None
        except ZooError as error:
            typer.echo(f"{recipe.name}: {error}", err=True)
            failed = True
        results += done[-1:]
    return results, failed


def _run_side_by_side(
    recipes: Sequence[RecipeFile],
    output: Path,
    make_tasks: Callable[[RecipeFile], list[SeedTask]],
    jobs: int,
) -> tuple[list[Reproduction], bool]:
    """Return the results of runs in processes, and whether one failed."""
    from zoo.errors import ZooError
    from zoo.training.interruption import raise_on_termination
    from zoo_lab.reproduce.data_check import check_data
    from zoo_lab.reproduce.recipe_run import write_results
    from zoo_lab.reproduce.side_by_side import run_tasks

    tasks, usable = [], []
    for recipe in recipes:
        try:
            check_data(recipe.recipe.data)
            tasks += make_tasks(recipe)
            usable.append(recipe)
        except ZooError as error:
            typer.echo(f"{recipe.name}: {error}", err=True)
    with raise_on_termination():
        failed = run_tasks(tasks, jobs, lambda text: typer.echo(text, err=True))
    results = [write_results(recipe, output) for recipe in usable]
    return results, bool(failed) or len(usable) < len(recipes)


def _print_recipes(recipes: Sequence[RecipeFile], as_json: bool) -> None:
    from zoo_lab.reproduce.data_check import find_missing
    from zoo_lab.reproduce.figures import format_target

    rows = []
    for recipe in recipes:
        source = recipe.recipe
        missing = find_missing(source.data)
        data = f"{', '.join(source.data)}{' (missing)' if missing else ''}"
        targets = "; ".join(text for f in source.figures if (text := format_target(f)))
        rows.append((recipe.name, recipe.plugin, data, str(len(source.seeds)), targets))
    columns = ("name", "plugin", "data", "seeds", "targets")
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_rows(columns, rows, no_wrap=columns[:2], right=("seeds",))


def figure_rows(result: Reproduction) -> list[tuple[str, ...]]:
    """Return the cells of `COLUMNS` for each figure."""
    from zoo_lab.reproduce.figures import format_figure, format_target

    minutes = sum(seed.seconds for seed in result.seeds) / 60
    return [
        (
            result.name,
            figure.label,
            figure.published,
            format_target(figure),
            format_figure(figure),
            str(len(figure.by_seed)),
            f"{minutes:.1f}",
        )
        for figure in result.figures
    ]
