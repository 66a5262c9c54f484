"""GRU encoder."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from zoo.plugin import FromParent
from zoo_recurrent.cells import Cell
from zoo_recurrent.recurrent_encoder import RecurrentEncoder
from zoo_recurrent.stack import Stack


class GRU(RecurrentEncoder):
    r"""GRU encoder, optionally stacked and bidirectional.

    .. math::
        r, z = \sigma(W_{r,z}\, x_t + U_{r,z}\, h_{t-1} + b_{r,z}), \quad
        \tilde h = \tanh(W x_t + r \odot (U h_{t-1} + b))

        h_t = (1 - z) \odot \tilde h + z \odot h_{t-1}

    Paper: Cho et al. 2014, appendix A.

    Args:
        input_dim: width of the inputs.
        hidden: width of the state, in each direction.
        layers: number of layers.
        bidirectional: also run backward; states are twice as wide.
        dropout: dropout probability between layers.
        input_dropout: dropout probability of the inputs.
        output_dropout: dropout probability of the states, but not of the final state.
        variant: 'cudnn' applies the reset gate after the recurrent product, 'cho' before it, as
            in the paper.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, hidden * directions].
    """

    name: ClassVar[str] = "gru"
    paper: ClassVar[str] = (
        "Cho et al. 2014, Learning Phrase Representations using RNN Encoder-Decoder, "
        "arXiv:1406.1078"
    )

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
        variant: Literal["cudnn", "cho"] = "cudnn",
    ) -> None:
        cell: Cell = "gru" if variant == "cudnn" else "gru-cho"
        super().__init__(
            Stack(cell, input_dim, hidden, layers, bidirectional, dropout),
            input_dropout=input_dropout,
            output_dropout=output_dropout,
        )
        self.variant = variant
