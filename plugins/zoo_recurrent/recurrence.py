"""Parameters that the recurrent decoders share."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from zoo_recurrent.initial_state import Init


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """Width, depth, initial state and dropout of the recurrent network of a decoder.

    Args:
        hidden: width of the state.
        layers: number of layers.
        init: initial state: 'bridge' (tanh of a projection of the summary), 'copy' (the encoder's
            final state) or 'zeros'.
        dropout: dropout probability of the embedded tokens, between layers and before the output.
    """

    hidden: Annotated[int, Field(ge=1)]
    layers: Annotated[int, Field(ge=1, le=64)] = 1
    init: Init = "bridge"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
