"""Examples with images and recordings that are decoded once and kept in memory."""

from __future__ import annotations

import mmap
import os
import pickle
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from zoo.interfaces import Example, Examples
from zoo.spec.memory import available_bytes

MAX_MEMORY = 2 * 1024**3
"""Largest number of bytes of kept examples."""
MEMORY_SHARE = 8
"""Kept examples take at most this part of the free memory."""

_HEADER = struct.Struct("qq")  # size and checksum of a record


def keep_decoded(examples: Examples, workers: int) -> Examples:
    """Return examples that keep what was decoded; the same ones if they do not decode files, or if
    there is no memory for it, or it is not known.

    Args:
        workers: number of worker processes; 0 if this process reads the examples.
    """
    if not examples.decodes_files():
        return examples
    free = available_bytes(torch.device("cpu")) or 0
    processes = max(1, int(os.environ.get("LOCAL_WORLD_SIZE") or 1))  # each keeps its own
    memory = min(MAX_MEMORY, free // MEMORY_SHARE // processes)
    if memory <= 0:
        return examples
    try:
        return KeptExamples(examples, memory=memory, workers=workers)
    except OSError:  # the process may not reserve so much
        return examples


class KeptExamples(Examples):
    """Examples that are read once, as long as there is room, in memory that forked processes share.

    There are no locks, which a killed process would leave behind. Each worker process of the one
    DataLoader has a part of the memory for what it reads; other processes only find records. The
    checksum of a record finds one that another process wrote over. Copies and unpickled objects are
    the plain examples.

    Args:
        memory: number of bytes of all records.
        workers: number of worker processes; 0 if this process reads the examples.
    """

    def __init__(self, examples: Examples, *, memory: int, workers: int) -> None:
        self.examples = examples
        self._count = len(examples)
        self._workers, self._process = workers, os.getpid()
        parts = max(1, workers)
        self._room = memory // parts
        table = np.int64().itemsize * (self._count + parts)
        self._memory = mmap.mmap(-1, table + self._room * parts)
        numbers = np.frombuffer(self._memory, np.int64, self._count + parts)
        self._starts, self._used = numbers[: self._count], numbers[self._count :]
        self._first = table

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Example:
        if not 0 <= index < self._count:
            return self.examples[index]
        example = self._find(index)
        if example is None:
            example = self.examples[index]
            self._keep(index, example)
        return example

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain, (self.examples,)

    def origin(self, index: int) -> str:
        return self.examples.origin(index)

    def position_names(self, index: int) -> Sequence[str] | None:
        return self.examples.position_names(index)

    def decodes_files(self) -> bool:
        return False

    def sizes(self) -> Sequence[int] | None:
        return self.examples.sizes()

    def _find(self, index: int) -> Example | None:
        start = int(self._starts[index])
        if not start:
            return None
        size, checksum = _HEADER.unpack_from(self._memory, start)
        if not 0 < size <= self._room:  # another record was written over it
            return None
        record = self._memory[start + _HEADER.size : start + _HEADER.size + size]
        if _checksum(record, index) != checksum:
            return None
        example: Example = pickle.loads(record)  # of a process of this training
        return example

    def _keep(self, index: int, example: Example) -> None:
        part = self._own_part()
        if part is None or self._used[part] >= self._room:
            return
        used = int(self._used[part])
        try:
            record = pickle.dumps(dict(example), pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, TypeError, AttributeError):  # a value of a plugin
            return
        size = _HEADER.size + len(record)
        if used + size > self._room:
            self._used[part] = self._room  # so that no other record is made in vain
            return
        start = self._first + part * self._room + used
        _HEADER.pack_into(self._memory, start, len(record), _checksum(record, index))
        self._memory[start + _HEADER.size : start + size] = record
        self._used[part] = used + size
        self._starts[index] = start

    def _own_part(self) -> int | None:
        """Return the part in which this process keeps records; None if it has none."""
        worker = get_worker_info()
        if worker is None:
            return None if self._workers or os.getpid() != self._process else 0
        return worker.id if worker.num_workers == self._workers else None


def _plain(examples: Examples) -> Examples:
    return examples


def _checksum(record: bytes, index: int) -> int:
    return zlib.crc32(record, index + 1)  # that of no bytes at all is not 0
