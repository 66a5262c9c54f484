"""Base class of the recurrent encoders."""

from torch import Tensor

from zoo.plugin import Encoder, Memory
from zoo_recurrent.cells import Cell, state_names
from zoo_recurrent.stack import Stack


class RecurrentEncoder(Encoder):
    """Stacked recurrent layers; a subclass selects the cell."""

    def __init__(
        self,
        cell: Cell,
        input_dim: int,
        hidden: int,
        layers: int,
        bidirectional: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.input_dim, self.hidden, self.layers = input_dim, hidden, layers
        self.bidirectional, self.dropout = bidirectional, dropout
        self.stack = Stack(cell, input_dim, hidden, layers, bidirectional, dropout)
        self.output_dim = self.summary_dim = self.stack.output_dim
        self.carry = dict.fromkeys(state_names(cell), (layers, self.output_dim))

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory: Memory = self.stack(inputs, mask)
        return memory
