"""Attentive recurrent decoder in Bahdanau's order: look first, then move."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import Attention, Blueprint, Decoder, Embedding, FromParent, Mask, Memory, State
from zoo_recurrent.attention_state import add_prefix, split_state
from zoo_recurrent.cells import Cell, CellStack
from zoo_recurrent.initial_state import Init, InitialState
from zoo_recurrent.vocab_size import vocabulary


class AttentiveRNN(Decoder):
    r"""Looks at the source with its last state, then moves and speaks with what it saw.

    .. math::
        c_i = \mathrm{attend}(s_{i-1}, h), \quad s_i = \mathrm{cell}([E y_{i-1}; c_i], s_{i-1})

        p(y_i) = \mathrm{softmax}(W_o\, \mathrm{maxout}(U_o s_i + V_o E y_{i-1} + C_o c_i))

    Paper: Bahdanau et al. 2015, section 3.1 and appendix A.2.2. The readout takes s_i, as
    equation 4 says (the appendix writes s_{i-1}); the first state is made from the whole
    summary, of which the paper takes the backward half.

    Args:
        embedding: the target embedding.
        memory_dim: width of the encoder's states.
        summary_dim: width of the memory's summary.
        carry: form of the state the encoder ends in.
        attention: how the source is looked at.
        hidden: width of the state.
        readout: width of the maxout layer; half of hidden if not set.
        cell: which recurrent cell.
        layers: how many are stacked; the topmost looks.
        init: where the first state comes from.
        dropout: on the embedded tokens, between layers and before the output.

    Shapes:
        tokens [B, n] -> logits [B, n, V].
    """

    name: ClassVar[str] = "attentive-rnn"
    paper: ClassVar[str] = (
        "Bahdanau et al. 2015, Neural Machine Translation by Jointly Learning to Align and "
        "Translate, arXiv:1409.0473"
    )

    def __init__(
        self,
        *,
        embedding: FromParent[Embedding],
        memory_dim: FromParent[int],
        summary_dim: FromParent[int],
        carry: FromParent[Mapping[str, tuple[int, int]]],
        attention: Blueprint[Attention],
        hidden: Annotated[int, Field(ge=1)],
        readout: Annotated[int, Field(ge=1)] | None = None,
        cell: Cell = "gru",
        layers: Annotated[int, Field(ge=1, le=64)] = 1,
        init: Init = "bridge",
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.initial = InitialState(
            init, cell, layers=layers, hidden=hidden, summary_dim=summary_dim, carry=carry
        )
        self.attention = attention.build(query_dim=hidden, key_dim=memory_dim)
        context = self.attention.output_dim
        self.cells = CellStack(
            cell, input_dim=embedding.dim + context, hidden=hidden, layers=layers, dropout=dropout
        )
        self.dropout = nn.Dropout(dropout)
        readout = readout or max(hidden // 2, 1)
        self.readout = nn.Linear(hidden + embedding.dim + context, 2 * readout)
        self.out = nn.Linear(readout, vocabulary(embedding))

    def start(self, memory: Memory, *, steps: int) -> State:
        prepared = self.attention.prepare(memory.states)
        per_hypothesis = self.initial(memory) | add_prefix(self.attention.init_state(prepared))
        return State(per_hypothesis, {**prepared, "mask": memory.mask})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        x = self.dropout(self.embedding(tokens))  # [B, n, E]
        mask = Mask(keys=state.per_source["mask"])
        per_hypothesis, look = split_state(state.per_hypothesis)
        features = []
        for t in range(tokens.shape[1]):
            query = per_hypothesis["h"][:, -1:]  # [B, 1, H]
            context, look = self.attention(query, state.per_source, mask, state=look)
            c = context[:, 0]
            per_hypothesis = self.cells(torch.cat([x[:, t], c], dim=-1), per_hypothesis)
            features.append(torch.cat([per_hypothesis["h"][:, -1], x[:, t], c], dim=-1))
        pieces = self.readout(torch.stack(features, dim=1))  # [B, n, 2 * readout]
        maxout = pieces.unflatten(-1, (-1, 2)).amax(dim=-1)
        logits: Tensor = self.out(self.dropout(maxout))
        return logits, state.updated(per_hypothesis | add_prefix(look))
