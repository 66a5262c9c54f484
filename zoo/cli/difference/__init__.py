"""Differences between two models or specs: settings, tensors and outputs."""

from zoo.cli.difference.comparing import SECTIONS, Difference, compare

__all__ = ["SECTIONS", "Difference", "compare"]
