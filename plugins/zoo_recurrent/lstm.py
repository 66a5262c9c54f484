"""LSTM encoder."""

from typing import Annotated, ClassVar

from pydantic import Field

from zoo.plugin import FromParent
from zoo_recurrent.recurrent_encoder import RecurrentEncoder
from zoo_recurrent.stack import Stack


class LSTM(RecurrentEncoder):
    r"""LSTM encoder, optionally stacked and bidirectional.

    .. math::
        i, f, o = \sigma(W_{i,f,o}\, x_t + U_{i,f,o}\, h_{t-1} + b_{i,f,o}), \quad
        \tilde c = \tanh(W_c x_t + U_c h_{t-1} + b_c)

        c_t = f \odot c_{t-1} + i \odot \tilde c, \qquad h_t = o \odot \tanh(c_t)

    Paper: Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000.

    Args:
        input_dim: width of the inputs.
        hidden: width of the state, in each direction.
        layers: number of layers.
        bidirectional: also run backward; states are twice as wide.
        dropout: dropout probability between layers.
        input_dropout: dropout probability of the inputs.
        output_dropout: dropout probability of the states, but not of the final state.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, hidden * directions].
    """

    name: ClassVar[str] = "lstm"
    paper: ClassVar[str] = "Hochreiter and Schmidhuber 1997, Long Short-Term Memory"

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)],
        layers: Annotated[int, Field(ge=1, le=64)] = 1,
        bidirectional: bool = False,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        input_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        output_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__(
            Stack("lstm", input_dim, hidden, layers, bidirectional, dropout),
            input_dropout=input_dropout,
            output_dropout=output_dropout,
        )
