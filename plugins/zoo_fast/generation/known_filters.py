"""Properties of classes of filters; with filters of other classes, prompts are not padded."""

from __future__ import annotations

from zoo.plugin import Filter
from zoo_fast.by_class import ByClass


@ByClass
def ignores_repeats(filter: Filter) -> bool | None:
    """Return whether the scores are the same if the first token is repeated before the others."""
