"""Recurrent decoder that attends after its recurrent step (Luong)."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from zoo.plugin import Attention, Blueprint, Embedding, FromParent, Memory, State
from zoo_recurrent.cells import Cell
from zoo_recurrent.recurrence import Recurrence
from zoo_recurrent.recurrent_decoder import AttentionDecoder, StepOutput, TensorMapping
from zoo_recurrent.vocab_size import vocab_size


class LuongRNN(AttentionDecoder):
    r"""Recurrent decoder with attention after the recurrent step, optionally with input feeding.

    .. math::
        s_t = \mathrm{cell}([E y_{t-1}; \tilde h_{t-1}], s_{t-1}), \quad
        c_t = \mathrm{attend}(s_t, h)

        \tilde h_t = \tanh(W_c [c_t; s_t]), \qquad p(y_t) = \mathrm{softmax}(W_s \tilde h_t)

    With output 'linear', h̃ = [c; s], so the logits are W [c; s] + b.

    Paper: Luong et al. 2015, equations 5 and 6, and section 3.3 for input feeding.

    Args:
        embedding: target embedding.
        memory_dim: width of the encoder's states.
        summary_dim: width of the memory's summary.
        carry: layers and width of each tensor of the encoder's final state.
        attention: attention over the encoder's states; the query is the top layer's state.
        hidden: width of the state.
        cell: recurrent cell.
        layers: number of layers.
        init: initial state: 'bridge' (tanh of a projection of the summary), 'copy' (the encoder's
            final state) or 'zeros'.
        output: 'tanh' as in the paper, or 'linear': no hidden layer before the logits.
        input_feeding: concatenate the previous attentional state h̃ to the input of each step.
        dropout: dropout probability of the embedded tokens, between layers and before the output.

    Shapes:
        tokens [B, n] -> logits [B, n, V].
    """

    name: ClassVar[str] = "luong-rnn"
    paper: ClassVar[str] = (
        "Luong et al. 2015, Effective Approaches to Attention-based Neural Machine Translation, "
        "arXiv:1508.04025"
    )

    def __init__(
        self,
        *,
        embedding: FromParent[Embedding],
        memory_dim: FromParent[int],
        summary_dim: FromParent[int],
        carry: FromParent[Mapping[str, tuple[int, int]]],
        attention: Blueprint[Attention],
        recurrence: Recurrence,
        cell: Cell = "lstm",
        input_feeding: bool = True,
        output: Literal["tanh", "linear"] = "tanh",
    ) -> None:
        super().__init__(embedding, summary_dim, carry, recurrence, cell)
        hidden = recurrence.hidden
        self.memory_dim = memory_dim
        self.input_feeding = input_feeding
        self.output = output
        self.attention = attention.build(query_dim=hidden, key_dim=memory_dim)
        combined_dim = self.attention.output_dim + hidden
        self.output_dim = combined_dim if output == "linear" else hidden
        self.cells = self.build_cells(embedding.dim + (self.output_dim if input_feeding else 0))
        if output == "tanh":
            self.combine = nn.Linear(combined_dim, hidden, bias=False)
        self.out = nn.Linear(self.output_dim, vocab_size(embedding))

    def start(self, memory: Memory, *, steps: int) -> State:
        state = super().start(memory, steps=steps)
        if not self.input_feeding:
            return state
        h = state.per_hypothesis["h"]
        fed = h.new_zeros(len(h), self.output_dim)
        return state.updated({**state.per_hypothesis, "fed": fed})

    def decode_token(
        self, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        inputs = torch.cat([x, state["fed"]], dim=-1) if self.input_feeding else x
        updated = {**state, **self.cells(inputs, state)}
        s = updated["h"][:, -1]
        context, updated = self.attend(s, updated, per_source)
        attentional = self.attentional_state(context, s)
        if self.input_feeding:
            updated["fed"] = attentional
        return attentional, updated

    def attentional_state(self, context: Tensor, s: Tensor) -> Tensor:
        """Compute the attentional state of contexts and states."""
        both = torch.cat([context, s], dim=-1)
        return torch.tanh(self.combine(both)) if self.output == "tanh" else both
