"""``zoo compare``: train variants of a spec and compare quality, speed and memory."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.completion import complete_spec
from zoo.cli.output import JsonOption, SetOption, print_json, print_rows
from zoo.cli.run_options import DeviceOption
from zoo_lab.run_options import DataOption, ExamplesOption, LimitOption

if TYPE_CHECKING:
    from zoo_lab.compare.comparing import RunOptions
    from zoo_lab.compare.comparison_result import StudyResult
    from zoo_lab.compare.study_file import StudyPlan, StudySettings
    from zoo_lab.compare.variant_run import RunTask


def command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC",
            help="A spec or a recipe, by name or file; or study files, with their own variants.",
            autocompletion=complete_spec,
        ),
    ],
    swaps: Annotated[
        list[str] | None,
        typer.Option(
            "--swap",
            metavar="PATH=VALUE,VALUE",
            help="Values to try; each is a variant: a name or a mapping, {type: additive, "
            "hidden: 64}. Repeatable.",
        ),
    ] = None,
    product: Annotated[
        bool, typer.Option("--product", help="Compare each combination of the values.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Number of runs of each variant; default: 3, or as the study."),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of training of each run.")] = None,
    max_seconds: LimitOption = None,
    total: Annotated[
        float | None, typer.Option(min=0, help="Start no run after this many seconds.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Number of runs side by side, in processes.")
    ] = 1,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of runs, tables and plots.")
    ] = Path("runs") / "comparisons",
    data: DataOption = None,
    overrides: SetOption = None,
    examples: ExamplesOption = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the models and checkpoints of finished runs.")
    ] = False,
    list_variants: Annotated[
        bool, typer.Option("--list", help="List and check the variants; run nothing.")
    ] = False,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train variants of a spec, with several seeds, and compare them.

    Writes a JSON file for each run, and for each comparison a table (Markdown, CSV) and a plot
    (SVG). The same command continues: a finished run is not repeated. A run that fails is reported
    and stops nothing.
    """
    from zoo.training.run_folder import lock_folder
    from zoo_lab.bench.selection import find_device
    from zoo_lab.compare.comparing import RunOptions
    from zoo_lab.compare.study_file import StudySettings
    from zoo_lab.reproduce.data_check import set_data_folder

    set_data_folder(data)
    given = [*(overrides or ()), *([] if steps is None else [f"train.steps={steps}"])]
    settings = StudySettings(
        tuple(given), None if seeds is None else tuple(range(seeds)), max_seconds, examples
    )
    plans = _read(sources, swaps or (), settings, product=product)
    if list_variants:
        raise typer.Exit(_list_variants(plans, as_json=as_json))
    arguments = ["zoo", "compare", *sources]
    arguments += [part for text in swaps or () for part in ("--swap", text)]
    arguments += ["--product"] if product else []
    arguments += [part for text in overrides or () for part in ("--set", text)]
    for name, value in (("seeds", seeds), ("steps", steps), ("limit", max_seconds), ("jobs", jobs)):
        arguments += [] if value is None else [f"--{name}", f"{value:.12g}"]
    arguments += [] if examples is None else ["--examples", str(examples)]
    options = RunOptions(output, str(find_device(device)), shlex.join(arguments), jobs, total, keep)
    with contextlib.ExitStack() as locks:
        for plan in plans:
            locks.enter_context(lock_folder(output / plan.name))
        results, complete = _run(plans, options)
    if as_json:
        print_json([result.model_dump(mode="json") for result in results])
    else:
        _print_tables(results, output)
    if not complete:
        raise typer.Exit(1)


def _read(
    sources: Sequence[str], swaps: Sequence[str], settings: StudySettings, *, product: bool
) -> list[StudyPlan]:
    from zoo_lab.compare.study_file import is_study, make_study, read_study
    from zoo_lab.compare.swap import parse_swap

    parsed = [parse_swap(text) for text in swaps]
    plans = []
    for source in sources:
        if is_study(source):
            if parsed or product:
                raise typer.BadParameter(f"{source} is a study, which has its own variants")
            plans.append(read_study(source, settings))
        elif not parsed:
            raise typer.BadParameter(f"{source} is not a study: expected --swap PATH=VALUE,VALUE")
        else:
            plans.append(make_study(source, parsed, settings, product=product))
    names = [plan.name for plan in plans]
    for name in names:
        if names.count(name) > 1:
            raise typer.BadParameter(f"two comparisons are named '{name}'")
    return plans


def _run(plans: Sequence[StudyPlan], options: RunOptions) -> tuple[list[StudyResult], bool]:
    """Return the results, and whether all runs have one."""
    from zoo.cli.progress import task_progress
    from zoo.training.interruption import Interrupted, raise_on_termination
    from zoo_lab.compare.comparing import list_tasks, prepare, run_all, write_comparison

    data = prepare(plans, options)
    tasks = list_tasks(plans, options)
    asked = sum(len(plan.variants) * len(plan.seeds) for plan in plans)
    _print_message(f"{asked} runs, {asked - len(tasks)} of them finished before")
    ended = failed = 0
    stop: BaseException | None = None
    try:
        with raise_on_termination(), task_progress() as progress:
            for outcome in run_all(tasks, options):
                ended += 1
                failed += outcome.problem is not None
                _print_message(
                    _describe(outcome.task, outcome.problem, outcome.seconds, ended, len(tasks))
                )
                if progress is not None:
                    progress("runs", ended, len(tasks))
    except (Interrupted, KeyboardInterrupt) as error:
        stop = error
    results = [write_comparison(plan, options.output, data[plan.name]) for plan in plans]
    if stop is not None:
        _print_message(
            f"stopped: {asked - len(tasks) + ended - failed} of {asked} runs are finished and in "
            f"{options.output}; run the same command again to continue"
        )
        raise typer.Exit(getattr(stop, "exit_code", 130))
    if ended < len(tasks):
        _print_message(
            f"{len(tasks) - ended} runs were not started in {options.total:g} s; run the same "
            "command again to continue"
        )
    return results, not failed and ended == len(tasks)


def _print_message(text: str) -> None:
    """Print a message on standard error."""
    typer.echo(text, err=True)


def _describe(task: RunTask, problem: str | None, seconds: float, ended: int, tasks: int) -> str:
    """Return a line about a run that ended."""
    state = "done" if problem is None else f"failed: {problem}"
    return f"[{ended}/{tasks}] {task.name}: {state} ({seconds:.0f} s)"


def _list_variants(plans: Sequence[StudyPlan], *, as_json: bool) -> int:
    """Print the variants; return 1 if one of them is not valid."""
    from zoo.errors import SpecError
    from zoo.training.composing import check_started

    rows, failed = [], 0
    for plan in plans:
        checked: dict[str, str] = {}
        for name, variant in plan.variants.items():
            assert variant.recipe.spec is not None
            try:
                report = check_started(variant.recipe.spec)[1]
                checked[name] = f"{report.parameters:,}"
            except SpecError as error:
                checked[name], failed = str(error), 1
        for group, labels in plan.groups.items():
            for label, name in labels.items():
                changes = " ".join(plan.variants[name].changes)
                rows.append((plan.name, group, label, changes, checked[name]))
    columns = ("study", "group", "variant", "changes", "parameters")
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_rows(columns, rows, no_wrap=columns[:3])
    return failed


def _print_tables(results: Sequence[StudyResult], output: Path) -> None:
    from zoo_lab.compare.table import table_columns, table_rows

    for result in results:
        for group in result.groups:
            typer.echo(f"{result.title}: {group.title or group.name}")
            columns = table_columns(result)
            print_rows(
                columns, table_rows(result, group), no_wrap=columns[:1], right=columns[-4:-1]
            )
            typer.echo("")
        typer.echo(f"{output / result.name}.json, .md, .csv, .svg")
