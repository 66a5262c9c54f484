"""Attentive recurrent decoder in Luong's order: move first, then look."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import Attention, Blueprint, Decoder, Embedding, Given, Mask, Memory, State
from zoo_recurrent.cells import Cell, CellStack
from zoo_recurrent.initial import Init, Initial
from zoo_recurrent.looking import looking, parted
from zoo_recurrent.vocabulary import vocabulary


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
        embedding: Given[Embedding],
        memory_dim: Given[int],
        summary_dim: Given[int],
        carry: Given[Mapping[str, tuple[int, int]]],
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
        self.initial = Initial(
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
        moving = self.initial(memory)
        if self.input_feeding:
            moving["fed"] = torch.zeros_like(moving["h"][:, -1])
        prepared = self.attention.prepare(memory.states)
        moving |= looking(self.attention.start(prepared))
        return State(moving, {**prepared, "mask": memory.mask})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        x = self.dropout(self.embedding(tokens))  # [B, n, E]
        mask = Mask(keys=state.fixed["mask"])
        moving, look = parted(state.moving)
        spoken = []
        for t in range(tokens.shape[1]):
            fed = moving.pop("fed", None)
            inputs = x[:, t] if fed is None else torch.cat([x[:, t], fed], dim=-1)
            moving = self.cells(inputs, moving)
            s = moving["h"][:, -1:]  # [B, 1, H]
            c, look = self.attention.step(s, state.fixed, look, mask)
            h = torch.cat([c, s], dim=-1)[:, 0]
            spoken.append(torch.tanh(self.combine(h)))
            if fed is not None:
                moving["fed"] = spoken[-1]
        logits: Tensor = self.out(self.dropout(torch.stack(spoken, dim=1)))
        return logits, state.moved(moving | looking(look))
