"""DRAW: recurrent image generation with differentiable read and write windows."""

from collections.abc import Sequence

from zoo.plugin import Component, hookimpl
from zoo_draw.bound import BoundProgram
from zoo_draw.draw import Draw
from zoo_draw.variational import Variational


@hookimpl
def zoo_components() -> Sequence[type[Component]]:
    return [Draw, Variational, BoundProgram]
