"""Processes that run tasks one after another, so that the start of torch is paid once."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from zoo.errors import ZooError
from zoo.training.interruption import Interrupted

T = TypeVar("T")
_THREADS = "OMP_NUM_THREADS"


@dataclass(frozen=True)
class TaskOutcome(Generic[T]):
    """The end of a task; `problem` is the error, or None."""

    task: T
    seconds: float
    problem: str | None


def run_in_workers(
    tasks: Sequence[T],
    work: Callable[[T], None],
    jobs: int,
    *,
    deadline: float | None = None,
) -> Generator[TaskOutcome[T], None, None]:
    """Run tasks in their order, at most `jobs` at a time, and yield each as it ends.

    A worker that ends, or raises an error that is not a ZooError, is replaced: the state of a
    device after it is not known. When the generator is closed, the workers get SIGTERM, so that a
    training saves a checkpoint, and are waited for.

    Args:
        work: a function of a module, called in the workers.
        deadline: no task is started after this time of `time.monotonic`.
    """
    waiting, running = list(tasks), dict[Connection, _Worker]()
    idle: list[_Worker] = []

    def may_start() -> bool:
        return bool(waiting) and (deadline is None or time.monotonic() < deadline)

    try:
        while may_start() or running:
            while may_start() and len(running) < jobs:
                worker = idle.pop() if idle else _Worker(work, jobs)
                worker.send(waiting.pop(0))
                running[worker.connection] = worker
            for connection in set(running).intersection(wait(list(running))):
                worker = running.pop(connection)
                problem, usable = worker.receive()
                outcome = TaskOutcome(worker.task, time.monotonic() - worker.started, problem)
                if usable:
                    idle.append(worker)
                else:
                    worker.end()
                yield outcome
    finally:
        for worker in [*idle, *running.values()]:
            worker.terminate()
        for worker in [*idle, *running.values()]:
            worker.end()


class _Worker:
    def __init__(self, work: Callable[[Any], None], jobs: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, work))
        with _threads(max(1, (os.cpu_count() or 1) // jobs)):
            self._process.start()
        other.close()

    def send(self, task: Any) -> None:
        self.task, self.started = task, time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # reported by receive
            self.connection.send(task)

    def receive(self) -> tuple[str | None, bool]:
        """Return the error of the task or None, and whether the worker can be used again."""
        try:
            problem, usable = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            return f"the process ended with exit code {self._process.exitcode}", False
        return problem, usable

    def terminate(self) -> None:
        self.connection.close()
        self._process.terminate()

    def end(self) -> None:
        self.connection.close()
        self._process.join()


def describe_error(error: Exception) -> str:
    """Return the message of an error, with its type if it is not meant for users."""
    return str(error) if isinstance(error, ZooError) else f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    """Set the number of threads of processes that are started in the block."""
    before = os.environ.get(_THREADS)
    os.environ.setdefault(_THREADS, str(count))
    try:
        yield
    finally:
        if before is None:
            del os.environ[_THREADS]


def _serve(connection: Connection, work: Callable[[Any], None]) -> None:
    """Run the tasks that arrive until the connection is closed."""
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            task = connection.recv()
            try:
                work(task)
            except Interrupted as stop:
                connection.send((str(stop), False))
                return
            except Exception as error:
                usable = isinstance(error, ZooError)
                connection.send((describe_error(error), usable))
                if not usable:
                    return
            else:
                connection.send((None, True))
