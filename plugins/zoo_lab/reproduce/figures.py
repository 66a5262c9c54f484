"""Figures and their targets as text."""

from __future__ import annotations

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
    spread = "" if figure.spread is None else f" ± {format_number(figure.spread)}"
    reached = {None: "", True: " (reached)", False: " (not reached)"}[figure.reached]
    return f"{format_number(figure.mean)}{spread}{_suffix(figure.unit)}{reached}"


def _suffix(unit: str) -> str:
    return f" {unit}" if unit else ""


def format_number(value: float) -> str:
    """Return a number with two decimals, or three digits if it is below 1."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) >= 1 else f"{value:.3g}"
