"""Bahdanau et al. 2015: additive attention, also with a normalised vector (Raffel et al. 2017)."""

from collections.abc import Sequence

from zoo.plugin import Component, hookimpl
from zoo_bahdanau.additive import Additive
from zoo_bahdanau.normalised_additive import NormalisedAdditive


@hookimpl
def zoo_components() -> Sequence[type[Component]]:
    return [
        Additive,
        NormalisedAdditive,
    ]
