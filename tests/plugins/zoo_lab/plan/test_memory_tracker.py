"""Bytes of live storages, against values computed by hand."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from zoo.errors import ZooError
from zoo_lab.plan import memory_tracker
from zoo_lab.plan.memory_tracker import MemoryTracker


def test_storages_count_once_until_they_are_freed():
    with FakeTensorMode(), MemoryTracker() as tracker:
        first = torch.empty(256)  # 1,024 bytes
        view = first.view(16, 16)[2:]
        assert sum(tracker.live.values()) == 1024
        second = first + 1
        del first
        assert sum(tracker.live.values()) == 2048  # the view keeps the storage
        del view
        assert sum(tracker.live.values()) == 1024
        second += 1
    assert tracker.peak == 2048


def test_sizes_are_rounded_up_to_blocks():
    with FakeTensorMode(), MemoryTracker() as tracker:
        tensors = [torch.empty(1), torch.empty(128), torch.empty(129)]
    assert sum(tracker.live.values()) == 512 + 512 + 1024
    assert len(tensors) == 3


def test_the_peak_is_split_into_categories():
    with FakeTensorMode(), MemoryTracker(persistent=["weights"]) as tracker:
        weight = torch.empty(1024)
        tracker.assign([weight], "weights")
        tracker.category = "temporary"
        half = weight.bfloat16()
        other = (weight * 2) + 1  # the product is freed
        del other
    assert tracker.peak == 4096 + 2048 + 2 * 4096
    assert tracker.at_peak == {
        "weights": 4096,
        "copies": 2048,
        "temporary": 8192,
        "activations": 0,
    }
    assert tracker.transient_peak == 2048 + 8192
    assert half.dtype is torch.bfloat16


def test_reset_peak_starts_from_the_live_storages():
    with FakeTensorMode(), MemoryTracker() as tracker:
        kept = torch.empty(128)
        freed = torch.empty(4096)
        del freed
        tracker.reset_peak()
    assert tracker.peak == kept.numel() * 4


def test_values_are_fixed_and_masks_select_nothing():
    with FakeTensorMode(), MemoryTracker():
        numbers = torch.arange(4)
        assert int(numbers.sum()) == 0
        assert bool((numbers > 5).any()) is False
        assert float(numbers.float().mean()) == 1.0
        assert len(numbers[numbers > 1]) == 0
        assert (numbers > 1).nonzero().shape == (0, 1)


def test_too_many_operations_raise(monkeypatch):
    monkeypatch.setattr(memory_tracker, "MAX_OPERATIONS", 2)
    with FakeTensorMode(), MemoryTracker(), pytest.raises(ZooError, match="more than 2 operations"):
        torch.ones(1).exp().exp()
