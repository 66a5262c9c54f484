"""Figures and their targets as text."""

from __future__ import annotations

import math
import re
from typing import Protocol

from zoo_lab.reproduce.result import FigureResult


class _Target(Protocol):
    @property
    def unit(self) -> str: ...
    @property
    def at_least(self) -> float | None: ...
    @property
    def at_most(self) -> float | None: ...
    @property
    def spread_at_most(self) -> float | None: ...


def format_target(figure: _Target) -> str:
    """Return the target: ``at least 83 %, spread at most 0.7``; empty if there is none."""
    unit = _suffix(figure.unit)
    limits = (("at least", figure.at_least), ("at most", figure.at_most))
    parts = [
        f"{words} {format_number(value)}{unit}" for words, value in limits if value is not None
    ]
    if figure.spread_at_most is not None:
        parts.append(f"spread at most {format_number(figure.spread_at_most)}")
    return ", ".join(parts)


def format_figure(figure: FigureResult) -> str:
    """Return mean and spread, and whether the target is reached."""
    reached = {None: "", True: " (reached)", False: " (not reached)"}[figure.reached]
    return f"{format_mean(figure)}{reached}"


def format_mean(figure: FigureResult) -> str:
    """Return mean and spread."""
    spread = "" if figure.spread is None else f" ± {format_number(figure.spread)}"
    return f"{format_number(figure.mean)}{spread}{_suffix(figure.unit)}"


def reaches_published(figure: FigureResult, published: str) -> bool | None:
    """Return whether the mean reaches the first number of the paper's figure.

    None if the text does not start with a number, or no target gives the better direction.
    """
    found = re.match(r"(?:at most |at least )?(\d+(?:\.\d+)?)", published)
    if found is None or (figure.at_least is None) == (figure.at_most is None):
        return None
    number = float(found[1])
    return figure.mean >= number if figure.at_least is not None else figure.mean <= number


def wilson_interval(proportion: float, items: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % interval of a proportion of items, Wilson 1927."""
    centre = (proportion + z**2 / (2 * items)) / (1 + z**2 / items)
    variance = proportion * (1 - proportion) / items + z**2 / (4 * items**2)
    half = z / (1 + z**2 / items) * math.sqrt(variance)
    return centre - half if proportion > 0 else 0.0, centre + half if proportion < 1 else 1.0


def format_interval(percentage: float, items: int) -> str:
    """Return the 95 % interval of a percentage of items: `` [0.54, 0.86]``."""
    low, high = (100 * bound for bound in wilson_interval(percentage / 100, items))
    return f" [{format_number(low)}, {format_number(high)}]"


def _suffix(unit: str) -> str:
    return f" {unit}" if unit else ""


def format_number(value: float) -> str:
    """Return a number with two decimals, or three digits if it is below 1."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) >= 1 else f"{value:.3g}"
