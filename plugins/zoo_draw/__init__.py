"""Images drawn step by step, through windows that move by gradient."""

from collections.abc import Sequence

from zoo import Model
from zoo.plugin import Objective, hookimpl
from zoo_draw.draw import Draw
from zoo_draw.variational import Variational


@hookimpl
def zoo_components() -> Sequence[type[Model] | type[Objective]]:
    return [Draw, Variational]
