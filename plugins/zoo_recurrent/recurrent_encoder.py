"""Base class of the recurrent encoders."""

from torch import Tensor

from zoo.plugin import Encoder, Memory
from zoo_recurrent.cells import state_names
from zoo_recurrent.stack import Stack


class RecurrentEncoder(Encoder):
    """Recurrent encoder; a subclass creates the stacked layers."""

    def __init__(self, stack: Stack) -> None:
        super().__init__()
        self.stack = stack
        self.input_dim, self.hidden, self.layers = stack.input_dim, stack.hidden, len(stack.layers)
        self.bidirectional, self.dropout = stack.bidirectional, stack.dropout.p
        self.output_dim = self.summary_dim = stack.output_dim
        self.carry = dict.fromkeys(state_names(stack.cell), (self.layers, self.output_dim))

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory: Memory = self.stack(inputs, mask)
        return memory
