"""Recurrent models of visual attention: image classification from a sequence of glimpses."""

from collections.abc import Sequence

from zoo import Model
from zoo.plugin import Objective, hookimpl
from zoo_ram.hybrid_reinforce import HybridReinforce
from zoo_ram.ram import RAM


@hookimpl
def zoo_components() -> Sequence[type[Model] | type[Objective]]:
    return [RAM, HybridReinforce]
