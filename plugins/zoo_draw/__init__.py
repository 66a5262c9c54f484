"""DRAW: recurrent image generation with differentiable read and write windows."""

from collections.abc import Sequence

from zoo import Model
from zoo.plugin import Objective, hookimpl
from zoo_draw.draw import Draw
from zoo_draw.variational import Variational


@hookimpl
def zoo_components() -> Sequence[type[Model] | type[Objective]]:
    return [Draw, Variational]
