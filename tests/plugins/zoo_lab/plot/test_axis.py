"""Ticks are round and enclose the values."""

import math

import pytest

from zoo_lab.plot.axis import Axis


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([3, 97], [0, 20, 40, 60, 80, 100]),
        ([0.843, 0.869], [0.84, 0.845, 0.85, 0.855, 0.86, 0.865, 0.87]),
        ([1100, -50], [-200, 0, 200, 400, 600, 800, 1000, 1200]),
        ([5, 5], [5, 5.2, 5.4, 5.6, 5.8, 6]),
        ([math.nan, 2, math.inf, 4], [2, 2.5, 3, 3.5, 4]),
        ([], [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ],
)
def test_ticks(values, ticks):
    assert Axis(values, 0, 1).ticks == ticks


def test_positions_are_between_the_ends():
    axis = Axis([0, 100], 300, 50)
    assert [axis.place(value) for value in (0, 50, 100)] == [300, 175, 50]
