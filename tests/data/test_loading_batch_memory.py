"""Batches of worker processes in shared memory."""

import multiprocessing
import os
import signal

import numpy as np
import pytest
import torch
from data_kit import array_batches

from zoo.data import loading
from zoo.data.loading import BatchMemory
from zoo.data.source import Collated
from zoo.errors import DataError
from zoo.spec.training import Batching


def test_copies_equal_what_was_stored():
    batch = {
        "floats": torch.randn(3, 5),
        "IDs": torch.arange(7),
        "mask": torch.tensor([[True, False]]),
        "number": torch.tensor(2.5, dtype=torch.float64),
        "nothing": torch.zeros(0, 4),
        "turned": torch.arange(6).reshape(2, 3).T,
    }
    error = DataError("is broken", "list:3")
    shares = [Collated(batch, [4, 2], [(3, error)]), Collated(None, [], []), Collated({}, [1], [])]
    memory = BatchMemory(2, 2**20)
    stored = memory.store(1, shares)
    memory.store(0, [Collated({"floats": torch.zeros(9)}, [0], [])])
    copied = memory.copy(stored, pin=False)
    memory.store(1, [Collated({"floats": torch.zeros(99)}, [0], [])])  # does not change the copies
    assert [share.batch is None for share in copied] == [False, True, False]
    assert [share[1:] for share in copied] == [share[1:] for share in shares]
    assert list(copied[0].batch) == list(batch)
    for key, tensor in batch.items():
        torch.testing.assert_close(copied[0].batch[key], tensor, rtol=0, atol=0)


def test_a_batch_that_is_too_large_is_not_stored():
    memory = BatchMemory(1, 4096)
    assert memory.store(0, [Collated({"a": torch.zeros(1024)}, [0], [])]) is not None
    assert memory.store(0, [Collated({"a": torch.zeros(1025)}, [0], [])]) is None
    two = [Collated({"a": torch.zeros(600)}, [0], []), Collated({"a": torch.zeros(600)}, [1], [])]
    assert memory.store(0, two) is None


def _values(batches, epoch):
    return [update.batches[0]["source"] for update in list(batches.epoch(epoch))]


@pytest.mark.parametrize("limit", ["slots", "large", "no memory", "little memory", "spawn"])
def test_batches_are_those_of_one_process(limit, monkeypatch):
    if limit == "large":
        monkeypatch.setattr(loading, "MAX_SLOT", 4096)
        monkeypatch.setattr(loading, "MIN_SLOT", 4096)
    if limit == "no memory":
        monkeypatch.setenv("ZOO_MEMORY", str(2**62))
        monkeypatch.setattr(loading, "MAX_SLOT", 2**62)
    if limit == "little memory":
        monkeypatch.setenv("ZOO_MEMORY", str(2**20))
    if limit == "spawn":
        monkeypatch.setattr(multiprocessing, "get_start_method", lambda: "spawn")
    large = {3: np.ones((3, 60, 60), np.float32), 4: np.ones((3, 60, 60), np.float32)}
    alone = array_batches(80, Batching(items=1), bad=large)
    with array_batches(80, Batching(items=1), bad=large, workers=2) as batches:
        for epoch in range(2):
            expected, found = _values(alone, epoch), _values(batches, epoch)
            assert len(found) == 80  # more than the slots, and kept until all are made
            for first, second in zip(expected, found, strict=True):
                torch.testing.assert_close(first, second, rtol=0, atol=0)
        assert (batches._loader.memory is not None) == (limit in ("slots", "large"))


def test_epochs_that_are_left_do_not_change_later_ones():
    alone = array_batches(60, Batching(items=1))
    with array_batches(60, Batching(items=1), workers=2) as batches:
        kept = []
        for epoch, used in ((0, 1), (0, 7), (3, 60), (1, 20), (2, 60)):
            running = batches.epoch(epoch)
            kept.append([next(running).batches[0]["source"] for _ in range(used)])
        for (epoch, used), found in zip(
            ((0, 1), (0, 7), (3, 60), (1, 20), (2, 60)), kept, strict=True
        ):
            expected = _values(alone, epoch)[:used]
            torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_after_a_worker_is_killed_the_batches_are_the_same():
    alone = array_batches(60, Batching(items=1))
    with array_batches(60, Batching(items=1), workers=2) as batches:
        running = batches.epoch(0)
        found = [next(running).batches[0]["source"]]
        os.kill(batches._loader.loader._iterator._workers[0].pid, signal.SIGKILL)
        found += [update.batches[0]["source"] for update in running]
        assert batches.failure == "a process that reads data was killed"
        torch.testing.assert_close(found, _values(alone, 0), rtol=0, atol=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
@pytest.mark.parametrize("size", [2**28, 64])
def test_batches_are_pinned(size, monkeypatch):
    monkeypatch.setattr(loading, "MAX_SLOT", size)
    monkeypatch.setattr(loading, "MIN_SLOT", 64)
    alone = array_batches(8, Batching(items=4))
    with array_batches(8, Batching(items=4), workers=2, pin=True) as batches:
        found, expected = _values(batches, 0), _values(alone, 0)
    assert all(tensor.is_pinned() for tensor in found)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
