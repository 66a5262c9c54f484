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
    def max_difference(self) -> float:
        return max(each.difference for each in self.comparisons)

    @property
    def last_agreement(self) -> Comparison | None:
        """The comparison before the first difference."""
        index = list(self.comparisons).index(self.failures[0])
        return self.comparisons[index - 1] if index else None

    @property
    def failures(self) -> list[Comparison]:
        return [each for each in self.comparisons if not each.difference <= self.tolerance]

    def as_json(self) -> dict[str, Any]:
        """Return what the provenance of the model file contains."""
        first = self.failures[:1]
        return {
            "file": self.file,
            "sha256": self.sha256,
            "tolerance": self.tolerance,
            # JSON has no infinity, the difference of an output that is NaN.
            "max_difference": self.max_difference if math.isfinite(self.max_difference) else None,
            "compared": [each.name for each in self.comparisons],
            "passed": not first,
            **({"first_difference": first[0].module} if first else {}),
        }

    def message(self) -> str:
        """Return one line, or for a failure the first module that differs and its settings."""
        if not self.failures:
            return (
                f"{self.file}: {len(self.comparisons)} arrays agree, largest difference "
                f"{self.max_difference:.1e} (tolerance {self.tolerance:g})"
            )
        first, previous = self.failures[0], self.last_agreement
        after = f", after '{previous.module}', which agrees" if previous else ""
        difference, tolerance = f"{self.max_difference:.3g}", f"{self.tolerance:g}"
        lines = [
            f"{self.file}: the model differs from the original by {difference} > {tolerance}",
            f"first difference: {first.difference:.3g} in '{first.module}'{after}",
        ]
        if first.module.startswith(OUTPUT):
            lines.append(
                "add activations of the original, named by module, to find the first module that "
                "differs"
            )
        if self.settings:
            lines.append("settings that do not change shapes: " + ", ".join(self.settings))
        return "\n  ".join(lines)
