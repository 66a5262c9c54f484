"""Processes that run tasks one after another, so that the start of torch is paid once."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from zoo.errors import ZooError
from zoo.training.interruption import Interrupted

T = TypeVar("T")
ENDED = "the process ended with exit code"
"""Start of the problem of a task whose worker ended before the task."""
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
    max_seconds: float | None = None,
) -> Generator[TaskOutcome[T], None, None]:
    """Run tasks in their order, at most `jobs` at a time, and yield each as it ends.

    A worker that ends, or raises an error that is not a ZooError, is replaced: the state of a
    device after it is not known. When the generator is closed, the workers get SIGTERM, so that a
    training saves a checkpoint, and are waited for.

    Args:
        work: a function of a module, called in the workers.
        deadline: no task is started after this time of `time.monotonic`.
        max_seconds: seconds for each task. A worker that takes longer is killed, with the processes
            that it has started, such as compilers; so are the workers when the generator is closed.
    """
    waiting, running = list(tasks), dict[Connection, _Worker]()
    idle: list[_Worker] = []

    def may_start() -> bool:
        return bool(waiting) and (deadline is None or time.monotonic() < deadline)

    try:
        while may_start() or running:
            while may_start() and len(running) < jobs:
                worker = idle.pop() if idle else _Worker(work, jobs, max_seconds)
                worker.send(waiting.pop(0))
                running[worker.connection] = worker
            for connection in _wait(running):
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
    def __init__(
        self, work: Callable[[Any], None], jobs: int, max_seconds: float | None = None
    ) -> None:
        self._max_seconds = max_seconds
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, work, self._has_group))
        with _threads(jobs):
            self._process.start()
        other.close()

    def send(self, task: Any) -> None:
        self.task, self.started = task, time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # reported by receive
            self.connection.send(task)

    @property
    def _has_group(self) -> bool:
        """Whether the worker and the processes that it starts are a group of their own."""
        return self._max_seconds is not None and hasattr(os, "setsid")

    @property
    def seconds_left(self) -> float:
        """Seconds until the limit of the task, infinite if there is none."""
        if self._max_seconds is None:
            return math.inf
        return max(0.0, self.started + self._max_seconds - time.monotonic())

    def receive(self) -> tuple[str | None, bool]:
        """Return the error of the task or None, and whether the worker can be used again."""
        if not self.connection.poll():
            self.terminate()
            return f"stopped after {self._max_seconds:g} s", False
        try:
            problem, usable = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            return f"{ENDED} {self._process.exitcode}", False
        return problem, usable

    def terminate(self) -> None:
        self.connection.close()
        if self._max_seconds is None:
            self._process.terminate()
        else:
            self._process.kill()

    def end(self) -> None:
        self.connection.close()
        self._process.join()
        if self._has_group and self._process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _wait(running: Mapping[Connection, _Worker]) -> list[Connection]:
    """Wait until workers have ended their tasks or exceed their limits, and return them."""
    seconds = min(worker.seconds_left for worker in running.values())
    ready = set(wait(list(running), timeout=None if math.isinf(seconds) else seconds))
    return [c for c, worker in running.items() if c in ready or worker.seconds_left <= 0]


def describe_error(error: Exception) -> str:
    """Return the message of an error, with its type if it is not meant for users."""
    return str(error) if isinstance(error, ZooError) else f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _threads(jobs: int) -> Iterator[None]:
    """Divide the threads over several workers, which are started in the block."""
    if jobs == 1 or _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = str(max(1, (os.cpu_count() or 1) // jobs))
    try:
        yield
    finally:
        del os.environ[_THREADS]


def _serve(connection: Connection, work: Callable[[Any], None], has_group: bool) -> None:
    """Run the tasks that arrive until the connection is closed."""
    if has_group:
        os.setsid()
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
