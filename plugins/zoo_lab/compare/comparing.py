"""Runs studies: lists the runs that are missing, runs them, and writes tables and plots."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zoo.training.callback import Callback
from zoo.training.interruption import Interrupted
from zoo_lab.compare.comparison_plot import plot_comparison
from zoo_lab.compare.comparison_result import Runs, StudyResult, collect_results, read_runs
from zoo_lab.compare.study_file import BASELINE, StudyPlan
from zoo_lab.compare.table import format_csv, format_markdown
from zoo_lab.compare.variant_run import RunTask, run_variant
from zoo_lab.process_pool import TaskOutcome, describe_error, run_in_workers
from zoo_lab.reproduce.data_check import check_data
from zoo_lab.reproduce.recipe_run import write_text
from zoo_lab.reproduce.tokenizers import train_tokenizers


@dataclass(frozen=True)
class RunOptions:
    """How the runs of studies are made.

    Attributes:
        output: folder of the runs and results.
        device: the device.
        command: the command line, for the results.
        jobs: number of runs side by side.
        total: start no run after this many seconds.
        keep: whether models and checkpoints of finished runs are kept.
    """

    output: Path
    device: str
    command: str = ""
    jobs: int = 1
    total: float | None = None
    keep: bool = False


def prepare(plans: Sequence[StudyPlan], options: RunOptions) -> dict[str, dict[str, str]]:
    """Check the data of studies and train the tokenizers of their bases.

    Returns:
        The checksums of the data of each study.
    """
    checked: dict[tuple[str, ...], dict[str, str]] = {}
    found = {}
    for plan in plans:
        names = tuple(plan.base.recipe.data)
        if names not in checked:
            checked[names] = check_data(names)
        train_tokenizers(plan.variants[BASELINE].recipe, options.output / plan.name)
        found[plan.name] = checked[names]
    return found


def list_tasks(plans: Sequence[StudyPlan], options: RunOptions) -> list[RunTask]:
    """Return the runs without a result: the first seed of all variants, then the second, ...

    Studies alternate, so that runs of different kinds share the machine.
    """
    tasks = []
    for place in range(max((len(plan.seeds) for plan in plans), default=0)):
        columns = [
            [_task(plan, name, plan.seeds[place], options) for name in plan.variants]
            for plan in plans
            if place < len(plan.seeds)
        ]
        rows = itertools.zip_longest(*columns)
        tasks += [task for row in rows for task in row if task is not None]
    runs: Runs = {}
    for plan in plans:
        runs |= read_runs(plan, options.output)[0]
    return [task for task in tasks if not _has_result(task, runs)]


def _has_result(task: RunTask, runs: Runs) -> bool:
    result = runs.get((task.recipe.fingerprint, task.seed))
    return result is not None and result.is_final(task.max_seconds, task.examples)


def _task(plan: StudyPlan, name: str, seed: int, options: RunOptions) -> RunTask:
    return RunTask(
        study=plan.name,
        variant=name,
        recipe=plan.variants[name].recipe,
        seed=seed,
        folder=options.output / plan.name,
        device=options.device,
        command=options.command,
        max_seconds=plan.max_seconds,
        examples=plan.examples,
        side_by_side=options.jobs,
        keep=options.keep,
    )


def run_all(
    tasks: Sequence[RunTask], options: RunOptions, callback: Callback | None = None
) -> Iterator[TaskOutcome[RunTask]]:
    """Run tasks, and yield each as it ends; one that fails stops nothing.

    Args:
        callback: observer of the training, for runs in this process.

    Raises:
        Interrupted: after SIGTERM or Ctrl-C in a run of this process.
    """
    deadline = None if options.total is None else time.monotonic() + options.total
    if options.jobs > 1:
        yield from run_in_workers(tasks, run_variant, options.jobs, deadline=deadline)
        return
    for task in tasks:
        started, problem = time.monotonic(), None
        if deadline is not None and started >= deadline:
            return
        try:
            run_variant(task, callback)
        except Interrupted:
            raise
        except Exception as error:  # written to the folder of the run
            problem = describe_error(error)
        yield TaskOutcome(task, time.monotonic() - started, problem)


def write_comparison(plan: StudyPlan, output: Path, data: dict[str, str]) -> StudyResult:
    """Write results as JSON, a table as Markdown and CSV, and a plot, and return the results."""
    comparison = collect_results(plan, output, data)
    write_text(output / f"{plan.name}.json", comparison.model_dump_json(indent=1))
    write_text(output / f"{plan.name}.md", format_markdown(comparison).rstrip())
    write_text(output / f"{plan.name}.csv", format_csv(comparison).rstrip())
    write_text(output / f"{plan.name}.svg", plot_comparison(comparison).rstrip())
    return comparison
