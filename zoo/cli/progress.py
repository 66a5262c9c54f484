"""Progress on standard error: bars of tasks that report their steps, and spinners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from zoo.cli.terminal import console
from zoo.cli.verbosity import shows_progress

MIN_PROGRESS_BYTES = 100_000_000
"""Size from which a bar of bytes is shown."""


@contextmanager
def activity(text: str) -> Iterator[None]:
    """Show on standard error what a block does that cannot count its steps, with a spinner.

    It must not download: downloads have their own bars.
    """
    if not shows_progress():
        yield
        return
    with console(stderr=True).status(text):
        yield


@contextmanager
def task_progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show a bar for each task on standard error; yield None if it is not a terminal.

    The yielded function takes the name of the task, and the number of finished and of all steps.
    """
    if not shows_progress():
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        tasks: dict[str, object] = {}

        def update(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done, total=total)  # type: ignore[arg-type]

        yield update


@contextmanager
def byte_progress(total: int, text: str) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar on standard error, with a text, for many bytes."""
    if total < MIN_PROGRESS_BYTES or not shows_progress():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(text), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.advance(task, done)
