"""Bahdanau, Cho and Bengio 2015: learning to align and translate."""

from collections.abc import Sequence

from zoo.plugin import Scorer, hookimpl
from zoo_bahdanau.additive import Additive


@hookimpl
def zoo_components() -> Sequence[type[Scorer]]:
    return [Additive]
