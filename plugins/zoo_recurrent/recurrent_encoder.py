"""Base class of the recurrent encoders."""

from dataclasses import replace

from torch import Tensor, nn

from zoo.plugin import Encoder, Memory
from zoo_recurrent.cells import state_names
from zoo_recurrent.stack import Stack


class RecurrentEncoder(Encoder):
    """Recurrent encoder; a subclass creates the stacked layers.

    Args:
        input_dropout: dropout probability of the inputs.
        output_dropout: dropout probability of the states, but not of the final state.
    """

    def __init__(
        self, stack: Stack, *, input_dropout: float = 0.0, output_dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.stack = stack
        self.input_dropout = nn.Dropout(input_dropout)
        self.output_dropout = nn.Dropout(output_dropout)
        self.input_dim, self.hidden, self.layers = stack.input_dim, stack.hidden, len(stack.layers)
        self.bidirectional, self.dropout = stack.bidirectional, stack.dropout.p
        self.output_dim = self.summary_dim = stack.output_dim
        self.carry = dict.fromkeys(state_names(stack.cell), (self.layers, self.output_dim))

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory: Memory = self.stack(self.input_dropout(inputs), mask)
        return replace(memory, states=self.output_dropout(memory.states))
