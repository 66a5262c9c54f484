"""RNN encoder."""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from zoo.plugin import Encoder, FromParent, Memory
from zoo_recurrent.stack import Stack


class RNN(Encoder):
    r"""Reads the inputs one by one into a state, the oldest way.

    .. math:: h_t = \tanh(W x_t + U h_{t-1} + b)

    Paper: Elman 1990.

    Args:
        input_dim: width of the inputs.
        hidden: width of the state, in each direction.
        layers: how many are stacked.
        bidirectional: read from both ends; states are twice as wide.
        dropout: between layers.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, hidden * directions].
    """

    name: ClassVar[str] = "rnn"
    paper: ClassVar[str] = "Elman 1990, Finding Structure in Time"

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
            "rnn",
            input_dim=input_dim,
            hidden=hidden,
            layers=layers,
            bidirectional=bidirectional,
            dropout=dropout,
        )
        self.output_dim = self.summary_dim = self.stack.output_dim
        self.carry = {"h": (layers, self.output_dim)}

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory: Memory = self.stack(inputs, mask)
        return memory
