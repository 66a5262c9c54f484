"""The axis of a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable


class Axis:
    """Positions of values between two ends in pixels, with round ticks.

    Args:
        values: all values to be shown, in any order; values that are not finite are ignored.
        start: position of the smallest tick.
        end: position of the largest tick; smaller than `start` for an axis that points upward.
    """

    def __init__(self, values: Iterable[float], start: float, end: float) -> None:
        finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(finite), max(finite)
        high = high if high > low else low + 1
        step = _tick_step(high - low)
        first, last = math.floor(low / step), math.ceil(high / step)
        self.ticks = [round(index * step, 10) for index in range(first, last + 1)]
        self._start, self._end = start, end

    def place(self, value: float) -> float:
        """Return the position of a value."""
        low, high = self.ticks[0], self.ticks[-1]
        return self._start + (self._end - self._start) * (value - low) / (high - low)


def _tick_step(length: float) -> float:
    """Return a step of 1, 2 or 5 times a power of ten that gives at most six intervals."""
    power = 10.0 ** math.floor(math.log10(length / 5))
    return next(step * power for step in (1, 2, 5, 10) if length / (step * power) <= 6)
