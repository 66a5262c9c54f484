"""Makes batches when they are needed, or ahead of their use in worker processes."""

from __future__ import annotations

import itertools
import mmap
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset as TorchDataset

from zoo.data.order import Indices
from zoo.data.source import BatchSource, Collated
from zoo.errors import DataError
from zoo.spec.memory import available_bytes


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Block signals while workers start, which inherit this until `leave_signals_to_parent`."""
    if sys.platform == "win32":
        yield
        return
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def unchanged_child_handler() -> Iterator[None]:
    """Keep the handler of SIGCHLD, for which a DataLoader sets its own when it starts workers.

    That one raises the error of a worker that was killed wherever the program is, for example in
    the middle of an update. Without it the error is raised when the next batch is needed.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGCHLD)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before or signal.SIG_DFL)


def leave_signals_to_parent(worker: int = 0) -> None:
    """Ignore Ctrl-C, SIGHUP and, on Linux, each SIGTERM that the parent process did not send.

    SIGTERM of the parent still ends the worker, as `multiprocessing` expects at the end of the
    program. A thread waits for the signal, because a handler in Python does not get its sender.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if sys.platform == "linux":
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGTERM})
        threading.Thread(target=_end_with_parent, daemon=True).start()
    elif sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _end_with_parent() -> None:
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
        pass
    os._exit(0)


_ALIGNMENT = 64


class StoredArray(NamedTuple):
    """Where an array is in the memory of a slot."""

    start: int
    shape: tuple[int, ...]
    dtype: str


class StoredShares(NamedTuple):
    """The micro-batches of an update, whose arrays are in a slot."""

    slot: int
    shares: list[Collated]
    arrays: list[dict[str, StoredArray]]


class BatchMemory:
    """Slots that forked processes share; each has the batches of one update.

    Args:
        slots: number of slots.
        size: bytes of each; memory is taken for what is written only.

    Raises:
        OSError: if the process may not reserve so much memory.
    """

    def __init__(self, slots: int, size: int) -> None:
        self._slots = [mmap.mmap(-1, size) for _ in range(slots)]
        self._size = size

    def store(self, slot: int, shares: list[Collated]) -> StoredShares | None:
        """Write batches to a slot; return None if they are too large."""
        start = 0
        stored: list[dict[str, StoredArray]] = []
        for share in shares:
            stored.append({})
            for key, tensor in (share.batch or {}).items():
                array = tensor.numpy()
                if start + array.nbytes > self._size:
                    return None
                stored[-1][key] = found = StoredArray(start, array.shape, array.dtype.str)
                self._view(slot, found)[...] = array
                start += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        empty = [share._replace(batch=None if share.batch is None else {}) for share in shares]
        return StoredShares(slot, empty, stored)

    def copy(self, stored: StoredShares, *, pin: bool) -> list[Collated]:
        """Return copies of stored batches.

        Args:
            pin: in pinned memory.
        """
        return [
            share
            if share.batch is None
            else share._replace(
                batch={key: self._copy(stored.slot, array, pin) for key, array in arrays.items()}
            )
            for share, arrays in zip(stored.shares, stored.arrays, strict=True)
        ]

    def _copy(self, slot: int, stored: StoredArray, pin: bool) -> Tensor:
        view = self._view(slot, stored)
        tensor = torch.empty_like(torch.from_numpy(view), pin_memory=pin)
        np.copyto(tensor.numpy(), view)  # torch would wake its threads, which takes longer
        return tensor

    def _view(self, slot: int, stored: StoredArray) -> np.ndarray[tuple[int, ...], np.dtype]:
        start, shape, dtype = stored
        return np.ndarray(shape, dtype, buffer=self._slots[slot], offset=start)


AHEAD = 16
"""Number of updates that are made ahead of their use, but 2 to 4 for each worker."""

MAX_SLOT = 256 * 1024**2
MIN_SLOT = 2**20
"""Largest and smallest number of bytes of an update in shared memory, which is taken for what is
written only."""
MEMORY_SHARE = 8
"""Updates in shared memory take at most this part of the free memory."""


class LoadingJob(NamedTuple):
    """The rows of the micro-batches of one update."""

    position: int
    epoch: int
    shares: Sequence[Indices]


class LoadedUpdate(NamedTuple):
    """The micro-batches of one update, or the error of an example that stops the run."""

    position: int
    shares: list[Collated]
    error: DataError | None = None


class JobDataset(TorchDataset[Any]):
    """Makes the batches of a job; the index of an item is the job."""

    def __init__(self, source: BatchSource, *, fail: bool) -> None:
        self.source = source
        self.fail = fail

    def __getitem__(self, job: LoadingJob) -> LoadedUpdate:
        shares: list[Collated] = []
        for rows in job.shares:
            if not len(rows):
                shares.append(Collated(None, [], []))
                continue
            shares.append(self.source.collate(rows, job.epoch))
            if self.fail and shares[-1].errors:
                return LoadedUpdate(job.position, [], shares[-1].errors[0][1])
        return LoadedUpdate(job.position, shares)


class StoredUpdate(NamedTuple):
    """The micro-batches of one update in shared memory."""

    position: int
    shares: StoredShares


class WorkerDataset(TorchDataset[Any]):
    """Makes the batches of a job in shared memory; the index of an item is a slot and the job."""

    def __init__(self, dataset: JobDataset, memory: BatchMemory | None) -> None:
        self.dataset = dataset
        self.memory = memory

    def __getitem__(self, item: tuple[int, LoadingJob]) -> LoadedUpdate | StoredUpdate:
        slot, job = item
        update = self.dataset[job]
        if self.memory is None or update.error is not None:
            return update
        stored = self.memory.store(slot, update.shares)
        return update if stored is None else StoredUpdate(update.position, stored)


class Loader:
    """Makes the batches of jobs in their order.

    Args:
        source: makes a batch of rows.
        fail: stop at the first example that cannot be used.
        workers: number of processes; 0: batches are made in this process.
        pin: copy the tensors to pinned memory, for fast transfer to a GPU.

    Attributes:
        failure: why the processes could not go on, such as the signal that killed one of them. The
            batches are then made in this process.
    """

    def __init__(self, source: BatchSource, *, fail: bool, workers: int, pin: bool) -> None:
        self.dataset = JobDataset(source, fail=fail)
        self.workers = workers
        self.pin = pin
        self.failure: str | None = None
        self.sampler = _Jobs()
        self.loader: DataLoader[Any] | None = None
        self.memory: BatchMemory | None = None

    def load(self, jobs: Iterable[LoadingJob]) -> Iterator[LoadedUpdate]:
        """Yield the batches of each job; raise the error of an example with its origin."""
        jobs, started = iter(jobs), deque[LoadingJob]()
        if self.workers and self.failure is None:
            yield from self._checked(self._until_failure(jobs, started))
        if not self.workers or self.failure is not None:
            yield from self.load_in_process(itertools.chain(started, jobs))

    def _until_failure(
        self, jobs: Iterator[LoadingJob], started: deque[LoadingJob]
    ) -> Iterator[LoadedUpdate]:
        """Yield the batches that worker processes make, until one of them is killed.

        Args:
            started: gets the jobs whose batches are not finished.
        """

        def start() -> Iterator[LoadingJob]:
            for job in jobs:
                started.append(job)
                yield job

        try:
            for update in self._processes(start()):
                started.popleft()
                yield update
        except (RuntimeError, OSError, EOFError):  # also of a connection that ended with a worker
            if not self._has_dead_worker():
                raise
            self.failure = "a process that reads data was killed"
            self.close()

    def load_in_process(self, jobs: Iterable[LoadingJob]) -> Iterator[LoadedUpdate]:
        """Yield the batches of each job, made in this process when they are needed.

        A thread would compete for the interpreter with the launches of GPU kernels.
        """
        updates = (self.dataset[job] for job in jobs)
        return self._checked(_pin(update) if self.pin else update for update in updates)

    def _checked(self, updates: Iterable[LoadedUpdate]) -> Iterator[LoadedUpdate]:
        for update in updates:
            if update.error is not None:
                self.close()
                update.error.skippable = True
                raise update.error
            yield update

    def _processes(self, jobs: Iterable[LoadingJob]) -> Iterator[LoadedUpdate]:
        factor = min(4, max(2, AHEAD // self.workers))
        # The DataLoader starts another job before it returns an update, which is then copied.
        slots = self.workers * factor + 1
        if self.loader is None:
            self.memory = _shared_memory(slots)
            self.loader = DataLoader(
                WorkerDataset(self.dataset, self.memory),
                batch_size=None,
                sampler=self.sampler,
                num_workers=self.workers,
                persistent_workers=True,
                prefetch_factor=factor,
                worker_init_fn=leave_signals_to_parent,
            )
        self.sampler.jobs = zip(itertools.cycle(range(slots)), jobs, strict=False)
        with _without_tokenizer_threads(), blocked_signals(), unchanged_child_handler():
            updates = iter(self.loader)
        yield from map(self._receive, updates)

    def _receive(self, update: LoadedUpdate | StoredUpdate) -> LoadedUpdate:
        if isinstance(update, LoadedUpdate):
            return _pin(update) if self.pin else update
        assert self.memory is not None
        return LoadedUpdate(update.position, self.memory.copy(update.shares, pin=self.pin))

    def _has_dead_worker(self) -> bool:
        workers = getattr(getattr(self.loader, "_iterator", None), "_workers", [])
        for worker in workers:
            worker.join(1)  # the connection ends before the process
        return any(not worker.is_alive() for worker in workers)

    def close(self) -> None:
        """End the worker processes."""
        loader, self.loader, self.memory = self.loader, None, None
        iterator = getattr(loader, "_iterator", None)
        if iterator is not None:
            iterator._shutdown_workers()
            for worker in iterator._workers:
                worker.kill()


@contextmanager
def _without_tokenizer_threads() -> Iterator[None]:
    """Start processes in which the tokenizers library uses no threads, which a fork does not copy.

    Without the setting, the library prints a warning in each of them.
    """
    name = "TOKENIZERS_PARALLELISM"
    old = os.environ.get(name)
    os.environ[name] = "false"
    try:
        yield
    finally:
        if old is None:
            del os.environ[name]
        else:
            os.environ[name] = old


class _Jobs:
    """The sampler of the DataLoader, whose jobs are set for each epoch."""

    jobs: Iterable[tuple[int, LoadingJob]] = ()

    def __iter__(self) -> Iterator[tuple[int, LoadingJob]]:
        return iter(self.jobs)


def _shared_memory(slots: int) -> BatchMemory | None:
    """Return memory for processes that are forked; None if they are not, or it cannot be had."""
    free = available_bytes(torch.device("cpu"))
    if multiprocessing.get_start_method() != "fork" or free is None:
        return None
    size = min(MAX_SLOT, free // MEMORY_SHARE // slots)
    if size < MIN_SLOT:
        return None
    try:
        return BatchMemory(slots, size)
    except OSError:
        return None


def _pin(update: LoadedUpdate) -> LoadedUpdate:
    shares = [
        share._replace(batch=share.batch and {k: t.pin_memory() for k, t in share.batch.items()})
        for share in update.shares
    ]
    return update._replace(shares=shares)
