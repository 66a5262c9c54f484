"""The least time of a computation."""

import pytest
from benchmark_kit import CPU

from zoo.benchmarking.floor import bound, floor_seconds
from zoo.interfaces import Floor


@pytest.mark.parametrize(
    ("floor", "seconds"),
    [
        (Floor(bytes=4.2e9), 1e-3),
        (Floor(operations=789e9), 1e-3),
        (Floor(bytes=4.2e9, operations=3 * 789e9), 3e-3),
        (Floor(), None),
    ],
)
def test_the_larger_of_both_times(floor, seconds):
    assert bound(floor) == pytest.approx(seconds)


def test_other_devices_have_no_floor():
    assert floor_seconds(Floor(bytes=4.2e9), CPU) is None
