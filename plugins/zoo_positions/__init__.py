"""Positions: sinusoidal, learned, rotary, ALiBi, T5, and several of them together."""

from collections.abc import Sequence

from zoo.plugin import Position, hookimpl
from zoo_positions.alibi import ALiBi
from zoo_positions.combined import Combined
from zoo_positions.learned import Learned
from zoo_positions.rotary import Rotary
from zoo_positions.sinusoidal import Sinusoidal
from zoo_positions.t5 import T5


@hookimpl
def zoo_components() -> Sequence[type[Position]]:
    return [Sinusoidal, Learned, Rotary, ALiBi, T5, Combined]
