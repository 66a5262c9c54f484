"""Attentive recurrent decoder in Luong's order: move first, then look."""

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


class LuongRNN(Decoder):
    r"""Moves, looks at the source with its new state, and speaks with both.

    .. math::
        s_t = \mathrm{cell}([E y_{t-1}; \tilde h_{t-1}], s_{t-1}), \quad
        c_t = \mathrm{attend}(s_t, h)

        \tilde h_t = \tanh(W_c [c_t; s_t]), \qquad p(y_t) = \mathrm{softmax}(W_s \tilde h_t)

    Paper: Luong et al. 2015, equations 5 and 6, and section 3.3 for input feeding.

    Args:
        embedding: the target embedding.
        memory_dim: width of the encoder's states.
        summary_dim: width of the memory's summary.
        carry: form of the state the encoder ends in.
        attention: how the source is looked at.
        hidden: width of the state.
        cell: which recurrent cell.
        layers: how many are stacked; the topmost looks.
        init: where the first state comes from.
        input_feeding: whether each step is told what the last one concluded.
        dropout: on the embedded tokens, between layers and before the output.

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
        hidden: Annotated[int, Field(ge=1)],
        cell: Cell = "lstm",
        layers: Annotated[int, Field(ge=1, le=64)] = 1,
        init: Init = "bridge",
        input_feeding: bool = True,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.input_feeding = input_feeding
        self.initial = InitialState(
            init, cell, layers=layers, hidden=hidden, summary_dim=summary_dim, carry=carry
        )
        self.cells = CellStack(
            cell,
            input_dim=embedding.dim + (hidden if input_feeding else 0),
            hidden=hidden,
            layers=layers,
            dropout=dropout,
        )
        self.attention = attention.build(query_dim=hidden, key_dim=memory_dim)
        self.combine = nn.Linear(self.attention.output_dim + hidden, hidden, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(hidden, vocabulary(embedding))

    def start(self, memory: Memory, *, steps: int) -> State:
        per_hypothesis = self.initial(memory)
        if self.input_feeding:
            per_hypothesis["fed"] = torch.zeros_like(per_hypothesis["h"][:, -1])
        prepared = self.attention.prepare(memory.states)
        per_hypothesis |= add_prefix(self.attention.init_state(prepared))
        return State(per_hypothesis, {**prepared, "mask": memory.mask})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        x = self.dropout(self.embedding(tokens))  # [B, n, E]
        mask = Mask(keys=state.per_source["mask"])
        per_hypothesis, look = split_state(state.per_hypothesis)
        outputs = []
        for t in range(tokens.shape[1]):
            fed = per_hypothesis.pop("fed", None)
            inputs = x[:, t] if fed is None else torch.cat([x[:, t], fed], dim=-1)
            per_hypothesis = self.cells(inputs, per_hypothesis)
            s = per_hypothesis["h"][:, -1:]  # [B, 1, H]
            c, look = self.attention(s, state.per_source, mask, state=look)
            h = torch.cat([c, s], dim=-1)[:, 0]
            outputs.append(torch.tanh(self.combine(h)))
            if fed is not None:
                per_hypothesis["fed"] = outputs[-1]
        logits: Tensor = self.out(self.dropout(torch.stack(outputs, dim=1)))
        return logits, state.updated(per_hypothesis | add_prefix(look))
