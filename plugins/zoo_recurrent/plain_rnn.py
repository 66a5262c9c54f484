"""Recurrent decoder without attention: the encoder's last state is all it knows."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import Decoder, Embedding, FromParent, Memory, State
from zoo_recurrent.cells import Cell, CellStack
from zoo_recurrent.initial_state import Init, InitialState
from zoo_recurrent.vocab_size import vocabulary


class PlainRNN(Decoder):
    r"""Speaks from a state that begins as the encoder's summary.

    .. math:: s_t = \mathrm{cell}(E y_{t-1}, s_{t-1}), \qquad p(y_t) = \mathrm{softmax}(W s_t)

    Paper: Sutskever et al. 2014, section 2.

    Args:
        embedding: the target embedding.
        summary_dim: width of the memory's summary.
        carry: form of the state the encoder ends in.
        hidden: width of the state.
        cell: which recurrent cell.
        layers: how many are stacked.
        init: where the first state comes from.
        dropout: on the embedded tokens, between layers and before the output.

    Shapes:
        tokens [B, n] -> logits [B, n, V].
    """

    name: ClassVar[str] = "plain-rnn"
    paper: ClassVar[str] = (
        "Sutskever et al. 2014, Sequence to Sequence Learning with Neural Networks, arXiv:1409.3215"
    )

    def __init__(
        self,
        *,
        embedding: FromParent[Embedding],
        summary_dim: FromParent[int],
        carry: FromParent[Mapping[str, tuple[int, int]]],
        hidden: Annotated[int, Field(ge=1)],
        cell: Cell = "lstm",
        layers: Annotated[int, Field(ge=1, le=64)] = 1,
        init: Init = "bridge",
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.initial = InitialState(
            init, cell, layers=layers, hidden=hidden, summary_dim=summary_dim, carry=carry
        )
        self.cells = CellStack(
            cell, input_dim=embedding.dim, hidden=hidden, layers=layers, dropout=dropout
        )
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(hidden, vocabulary(embedding))

    def start(self, memory: Memory, *, steps: int) -> State:
        return State(self.initial(memory))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        x = self.dropout(self.embedding(tokens))  # [B, n, E]
        per_hypothesis = dict(state.per_hypothesis)
        tops = []
        for t in range(tokens.shape[1]):
            per_hypothesis = self.cells(x[:, t], per_hypothesis)
            tops.append(per_hypothesis["h"][:, -1])
        logits: Tensor = self.out(self.dropout(torch.stack(tops, dim=1)))
        return logits, state.updated(per_hypothesis)
