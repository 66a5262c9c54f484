"""LSTM encoder."""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from zoo.plugin import Encoder, FromParent, Memory
from zoo_recurrent.stack import Stack


class LSTM(Encoder):
    r"""Reads the inputs into a cell that gates guard, so that what it holds can last.

    .. math::
        i, f, o = \sigma(W_{i,f,o}\, x_t + U_{i,f,o}\, h_{t-1} + b_{i,f,o}), \quad
        \tilde c = \tanh(W_c x_t + U_c h_{t-1} + b_c)

        c_t = f \odot c_{t-1} + i \odot \tilde c, \qquad h_t = o \odot \tanh(c_t)

    Paper: Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000.

    Args:
        input_dim: width of the inputs.
        hidden: width of the state, in each direction.
        layers: how many are stacked.
        bidirectional: read from both ends; states are twice as wide.
        dropout: between layers.

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
    ) -> None:
        super().__init__()
        self.stack = Stack(
            "lstm",
            input_dim=input_dim,
            hidden=hidden,
            layers=layers,
            bidirectional=bidirectional,
            dropout=dropout,
        )
        self.output_dim = self.summary_dim = self.stack.output_dim
        self.carry = {"h": (layers, self.output_dim), "c": (layers, self.output_dim)}

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory: Memory = self.stack(inputs, mask)
        return memory
