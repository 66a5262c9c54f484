"""Scores to weights."""

from collections.abc import Sequence

from zoo import Alignment, hookimpl
from zoo_alignment.soft import Soft


@hookimpl
def zoo_components() -> Sequence[type[Alignment]]:
    return [Soft]
