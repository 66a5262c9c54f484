"""The result of a comparison with the original model, and its message."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TOLERANCE = 1e-4
OUTPUT = "output."
"""Prefix of the names of outputs."""


@dataclass(frozen=True)
class Comparison:
    """One array of the file: its name, the module that computes it and the largest difference."""

    name: str
    module: str
    difference: float
    largest: float
    """The largest absolute value in the file."""
    hint: str = ""
    """What to change in the file if the array differs."""

    @property
    def relative(self) -> float:
        """The difference relative to the largest value; itself if all values are zero."""
        return self.difference / self.largest if self.largest else self.difference

    def __str__(self) -> str:
        return f"{self.difference:.3g}, {self.relative:.1e} of the largest value {self.largest:.3g}"


@dataclass(frozen=True)
class CheckResult:
    """The result of a check; comparisons are in the order of execution."""

    file: str
    sha256: str
    tolerance: float
    comparisons: Sequence[Comparison]
    settings: Sequence[str] = ()
    """Settings of the spec near the first difference that do not change any shape."""

    @property
    def largest(self) -> Comparison:
        """The comparison with the largest relative difference."""
        return max(self.comparisons, key=lambda each: each.relative)

    @property
    def last_agreement(self) -> Comparison | None:
        """The comparison before the first difference."""
        index = list(self.comparisons).index(self.failures[0])
        return self.comparisons[index - 1] if index else None

    @property
    def failures(self) -> list[Comparison]:
        return [each for each in self.comparisons if not each.relative <= self.tolerance]

    def as_json(self) -> dict[str, Any]:
        """Return what the provenance of the model file contains."""
        first = self.failures[:1]
        difference = max(each.difference for each in self.comparisons)
        return {
            "file": self.file,
            "sha256": self.sha256,
            "tolerance": self.tolerance,
            "max_difference": _to_json(difference),
            "max_relative_difference": _to_json(self.largest.relative),
            "compared": [each.name for each in self.comparisons],
            "passed": not first,
            **({"first_difference": first[0].module} if first else {}),
        }

    def message(self) -> str:
        """Return one line, or for a failure the first module that differs and its settings."""
        if not self.failures:
            return (
                f"{self.file}: {len(self.comparisons)} arrays agree, largest difference "
                f"{self.largest} (tolerance {self.tolerance:g})"
            )
        first, previous = self.failures[0], self.last_agreement
        after = f", after '{previous.module}', which agrees" if previous else ""
        tolerance = f"(tolerance {self.tolerance:g})"
        lines = [
            f"{self.file}: the model differs from the original by {self.largest} {tolerance}",
            f"first difference: {first.difference:.3g} in '{first.module}'{after}",
        ]
        if first.module.startswith(OUTPUT):
            lines.append(
                "add activations of the original, named by module, to find the first module that "
                "differs"
            )
        if first.hint:
            lines.append(first.hint)
        if self.settings:
            lines.append("settings that do not change weights: " + ", ".join(self.settings))
        return "\n  ".join(lines)


def _to_json(difference: float) -> float | None:
    """Return None for infinity, the difference of an output that is NaN; JSON does not have it."""
    return difference if math.isfinite(difference) else None
