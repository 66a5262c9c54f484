"""Bahdanau et al. 2015: additive attention."""

from collections.abc import Sequence

from zoo.plugin import Scorer, hookimpl
from zoo_bahdanau.additive import Additive


@hookimpl
def zoo_components() -> Sequence[type[Scorer]]:
    return [Additive]
