"""The least time of a computation."""

import pytest
from benchmark_kit import CPU

from zoo_lab.bench.benchmark import Bound
from zoo_lab.bench.bound import RATES, bound_seconds, min_seconds


@pytest.mark.parametrize(
    ("bound", "seconds"),
    [
        (Bound(bytes=4.2e9), 1e-3),
        (Bound(operations=789e9), 1e-3),
        (Bound(bytes=4.2e9, operations=3 * 789e9), 3e-3),
        (Bound(), None),
    ],
)
def test_the_larger_of_both_times(bound, seconds):
    assert min_seconds(bound, RATES["H200"]) == pytest.approx(seconds)


def test_other_devices_have_no_bound():
    assert bound_seconds(Bound(bytes=4.2e9), CPU) is None
