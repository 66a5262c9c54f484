"""Positions: sinusoidal, learned, rotary, ALiBi, T5, disentangled, gated, and several together."""

from collections.abc import Sequence

from zoo.plugin import Part, Position, hookimpl
from zoo_positions.alibi import ALiBi
from zoo_positions.combined import Combined
from zoo_positions.disentangled import Disentangled
from zoo_positions.gated import Gated
from zoo_positions.grid_bias import GridBias
from zoo_positions.learned import Learned
from zoo_positions.rotary import Rotary
from zoo_positions.scaling.linear import LinearScaling
from zoo_positions.scaling.llama3 import Llama3Scaling
from zoo_positions.scaling.longrope import LongRopeScaling
from zoo_positions.scaling.yarn import YarnScaling
from zoo_positions.sinusoidal import Sinusoidal
from zoo_positions.t5 import T5


@hookimpl
def zoo_components() -> Sequence[type[Position | Part]]:
    scalings = LinearScaling, Llama3Scaling, YarnScaling, LongRopeScaling
    biases = ALiBi, T5, GridBias, Disentangled, Gated
    return [Sinusoidal, Learned, Rotary, *biases, Combined, *scalings]
