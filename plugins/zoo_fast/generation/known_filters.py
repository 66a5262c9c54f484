"""Properties of classes of filters; with filters of other classes, prompts are not padded, and the
selection is not captured."""

from __future__ import annotations

from zoo.plugin import Filter
from zoo_fast.by_class import ByClass


@ByClass
def ignores_repeats(filter: Filter) -> bool | None:
    """Return whether the scores are the same if the first token is repeated before the others."""


@ByClass
def is_capturable(filter: Filter) -> bool | None:
    """Return whether the scores can be computed in a CUDA graph: they are the same if the first
    token is repeated before the others, and no value is copied from or to the device."""
