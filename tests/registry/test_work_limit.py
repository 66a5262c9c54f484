"""Limits on operations and memory."""

import pytest
import torch

from zoo.errors import ZooError
from zoo.registry.work_limit import WorkLimit


def test_results_outside_of_the_meta_device_are_limited_before_they_are_allocated():
    row, column = torch.ones(10**5), torch.ones(10**5, 1)
    with WorkLimit() as limit:
        torch.empty(10**12, device="meta") + 1
        row * 2
        assert limit.bytes == 400_000
        for allocate in (lambda: torch.zeros(10**12), lambda: row * column):
            with pytest.raises(ZooError, match="GB of memory, more than the limit"):
                allocate()


def test_operations_are_limited():
    tensor = torch.empty(3, device="meta")
    with WorkLimit(max_operations=5) as limit:
        for _ in range(5):
            tensor = tensor.neg()
        with pytest.raises(ZooError, match="than 5 operations"):
            tensor.neg()
    assert limit.operations == 6


def test_views_and_operations_that_depend_on_values_run():
    with WorkLimit(max_bytes=100):
        assert torch.tensor([0, 3, 0]).nonzero().flatten().tolist() == [1]
        assert torch.ones(3).view(3, 1).expand(3, 10**6).shape == (3, 10**6)
