"""Runs of recipes in several processes side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.tokenizers import train_tokenizers

LOG_FILE = "output.txt"
_POLL = 0.2


@dataclass(frozen=True)
class Task:
    """One seed of a recipe.

    Attributes:
        source: the recipe as the user named it.
        arguments: further arguments of ``zoo reproduce``.
        folder: folder of the run, which gets the output of the process.
    """

    name: str
    source: str
    seed: int
    arguments: tuple[str, ...]
    folder: Path

    @property
    def command(self) -> list[str]:
        """The command of the process."""
        zoo = [sys.executable, "-m", "zoo", "reproduce"]
        return [*zoo, self.source, "--seed", str(self.seed), *self.arguments]


def list_tasks(
    recipe: RecipeFile, output: Path, seeds: Sequence[int] | None, arguments: Sequence[str]
) -> list[Task]:
    """Train the tokenizers of a recipe, which its seeds share, and return its runs."""
    train_tokenizers(recipe, output / recipe.name)
    more = (*arguments, "--output", str(output))
    return [
        Task(recipe.name, recipe.source, seed, more, output / recipe.name / f"seed-{seed}")
        for seed in (recipe.recipe.seeds if seeds is None else seeds)
    ]


def run_tasks(tasks: Sequence[Task], jobs: int, report: Callable[[str], None]) -> list[Task]:
    """Run processes, at most `jobs` at a time, and return the tasks that failed.

    If this function is interrupted, the processes get SIGTERM: each saves a checkpoint and ends.

    Args:
        report: called with a line of text when a task ends.
    """
    waiting, running, failed = list(tasks), dict[Task, _Process](), []
    threads = max(1, (os.cpu_count() or 1) // jobs)
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop(0)
                running[task] = _Process(task, environment)
            time.sleep(_POLL)
            for task, process in list(running.items()):
                code = process.poll()
                if code is None:
                    continue
                del running[task]
                done = f"failed, see {task.folder / LOG_FILE}" if code else "done"
                report(f"{task.name} seed {task.seed}: {done} after {process.seconds:.0f} s")
                failed += [task] if code else []
    finally:
        for process in running.values():
            process.end()
    return failed


class _Process:
    def __init__(self, task: Task, environment: dict[str, str]) -> None:
        task.folder.mkdir(parents=True, exist_ok=True)
        self._log: IO[bytes] = (task.folder / LOG_FILE).open("ab")
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            task.command, stdout=self._log, stderr=subprocess.STDOUT, env=environment
        )

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def poll(self) -> int | None:
        code = self._process.poll()
        if code is not None:
            self._log.close()
        return code

    def end(self) -> None:
        """End the process, which saves a checkpoint first."""
        self._process.terminate()
        self._process.wait()
        self._log.close()
