"""Runs of recipes in several processes side by side."""

from __future__ import annotations

import contextlib
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from zoo.errors import ZooError
from zoo.training.interruption import Interrupted
from zoo.training.run_log import open_to_append
from zoo_lab.bench.selection import find_device
from zoo_lab.process_pool import run_in_workers
from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.recipe_run import run_recipe
from zoo_lab.reproduce.seed_run import SeedOptions
from zoo_lab.reproduce.tokenizers import train_tokenizers

LOG_FILE = "output.txt"


@dataclass(frozen=True)
class SeedTask:
    """One seed of a recipe.

    Attributes:
        output: folder of all results.
        command: the command line, for the results.
        device, max_seconds, examples: as the options of ``zoo reproduce``.
    """

    recipe: RecipeFile
    seed: int
    output: Path
    command: str
    device: str | None
    max_seconds: float | None
    examples: int | None

    @property
    def log(self) -> Path:
        """The file with the output of the run."""
        return self.output / self.recipe.name / f"seed-{self.seed}" / LOG_FILE


def list_tasks(
    recipe: RecipeFile,
    output: Path,
    seeds: Sequence[int] | None = None,
    *,
    settings: Sequence[str] = (),
    device: str | None = None,
    max_seconds: float | None = None,
    examples: int | None = None,
) -> list[SeedTask]:
    """Train the tokenizers of a recipe, which its seeds share, and return its runs.

    Args:
        settings: options of ``zoo reproduce`` that change the results, for the command line.
    """
    train_tokenizers(recipe, output / recipe.name)
    chosen = recipe.recipe.seeds if seeds is None else seeds
    begin = ["zoo", "reproduce", recipe.source]
    commands = [shlex.join([*begin, "--seed", str(seed), *settings]) for seed in chosen]
    return [
        SeedTask(recipe, seed, output, command, device, max_seconds, examples)
        for seed, command in zip(chosen, commands, strict=True)
    ]


def run_tasks(
    tasks: Sequence[SeedTask], jobs: int, report: Callable[[str], None]
) -> list[SeedTask]:
    """Run tasks in processes, at most `jobs` at a time, and return those that failed.

    If this function is interrupted, the processes get SIGTERM: each saves a checkpoint and ends.

    Args:
        report: called with a line of text when a task ends.
    """
    failed = []
    with contextlib.closing(run_in_workers(tasks, run_task, jobs)) as outcomes:
        for outcome in outcomes:
            task = outcome.task
            end = "done" if outcome.problem is None else f"failed, see {task.log}"
            report(f"{task.recipe.name} seed {task.seed}: {end} after {outcome.seconds:.0f} s")
            failed += [] if outcome.problem is None else [task]
    return failed


def run_task(task: SeedTask) -> None:
    """Run a seed in this process; its output and its error are appended to its log."""
    task.log.parent.mkdir(parents=True, exist_ok=True)
    with (
        open_to_append(task.log, sys.maxsize) as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        try:
            device = find_device(task.device)
            options = SeedOptions(device, task.command, task.max_seconds, task.examples)
            for _ in run_recipe(task.recipe, task.output, options, [task.seed]):
                pass
        except Interrupted:
            raise
        except Exception as error:
            text = str(error) if isinstance(error, ZooError) else traceback.format_exc()
            log.write(f"{text.strip()}\n")
            raise
