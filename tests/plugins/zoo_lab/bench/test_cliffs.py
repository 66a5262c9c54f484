"""No step of a sweep costs much more than that of half the batch while the bound is flat."""

import pytest
from benchmark_kit import measurement, result

from zoo_lab.bench.cliffs import find_cliffs


def _sweep(seconds, bounds=None, **params):
    """Return results of batches 1, 2, 4, ... with the given times."""
    bounds = bounds or [1e-3] * len(seconds)
    return [
        result(
            measurement(time),
            bound=bound,
            params={"batch": 2**index, **params},
            changed={"batch": 2**index},
        )
        for index, (time, bound) in enumerate(zip(seconds, bounds, strict=True))
    ]


def test_a_step_that_is_six_times_slower_is_a_cliff():
    (message,) = find_cliffs(_sweep([1e-3, 6e-3, 6e-3]))
    assert message == "tiny (batch=2): 6.00 x the time of batch=1 (6 ms and 1 ms)"


@pytest.mark.parametrize("growth", [1.0, 1.49])
def test_slow_growth_is_not_a_cliff(growth):
    assert not list(find_cliffs(_sweep([1e-3 * growth**index for index in range(6)])))


def test_a_time_that_grows_with_the_bound_is_not_a_cliff():
    seconds = [1e-3, 2e-3, 4e-3]
    assert not list(find_cliffs(_sweep(seconds, bounds=[1e-4, 2e-4, 4e-4])))
    assert len(list(find_cliffs(_sweep(seconds, bounds=[1e-4, 1.05e-4, 1.1e-4])))) == 2


def test_only_results_with_the_same_other_parameters_are_compared():
    short, long = _sweep([1e-3, 1e-3], context=16), _sweep([9e-3, 9e-3], context=4096)
    assert not list(find_cliffs([short[0], long[1]]))
    assert not list(find_cliffs([*short, *long]))


def test_results_without_time_or_bound_are_left_out():
    first, second, third = _sweep([1e-3, 9e-3, 99e-3])
    second.ours = None
    third.bound = None
    assert not list(find_cliffs([first, second, third]))
