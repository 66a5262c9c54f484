"""Decoder of Show, Attend and Tell."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Attention, Blueprint, Decoder, Embedding, FromParent, Mask, Memory, State

_ATTENTION_PREFIX = "attention."


class ShowAttendTell(Decoder):
    r"""LSTM decoder with gated attention, for image captioning.

    .. math::
        \hat z_t = \beta_t \, \mathrm{attend}(h_{t-1}, a), \qquad
        \beta_t = \sigma(f_\beta(h_{t-1}))

        h_t, c_t = \mathrm{LSTM}([E y_{t-1}; \hat z_t], h_{t-1}, c_{t-1})

        p(y_t) = \mathrm{softmax}(L_o (E y_{t-1} + L_h h_t + L_z \hat z_t))

        c_0 = f_{init,c}\Big(\frac{1}{L} \sum_i a_i\Big), \qquad
        h_0 = f_{init,h}\Big(\frac{1}{L} \sum_i a_i\Big)

    Paper: Xu et al. 2015, section 3.1.2 (equations 1 to 7) and the gate of section 4.2.1.
    Alignment `soft` gives the deterministic model, `hard` the stochastic one.

    Args:
        embedding: the target embedding E.
        memory_dim: width of the annotation vectors a.
        attention: attention to the annotation vectors.
        hidden: width of the LSTM.
        init_layers: number of layers of each f_init: the last has width hidden and tanh, the others
            have width memory_dim and ReLU.
        gate: whether the context is scaled by beta.
        dropout: dropout probability before the output.

    Shapes:
        tokens [B, n] -> logits [B, n, V].
    """

    name: ClassVar[str] = "show-attend-tell"
    paper: ClassVar[str] = (
        "Xu et al. 2015, Show, Attend and Tell: Neural Image Caption Generation with Visual "
        "Attention, arXiv:1502.03044"
    )

    def __init__(
        self,
        *,
        embedding: FromParent[Embedding],
        memory_dim: FromParent[int],
        attention: Blueprint[Attention],
        hidden: Annotated[int, Field(ge=1)],
        init_layers: Annotated[int, Field(ge=1, le=16)] = 1,
        gate: bool = True,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        if embedding.vocab is None:
            raise ZooError(
                f"embedding '{embedding.name}' is not a token embedding and has no vocabulary"
            )
        self.memory_dim, self.hidden, self.init_layers = memory_dim, hidden, init_layers
        self.gate = gate
        self.embedding = embedding
        self.init_h = _mlp(memory_dim, hidden, init_layers)
        self.init_c = _mlp(memory_dim, hidden, init_layers)
        self.attention = attention.build(query_dim=hidden, key_dim=memory_dim)
        context_dim = self.attention.output_dim
        self.beta = nn.Linear(hidden, 1) if gate else None
        self.cell = nn.LSTMCell(embedding.dim + context_dim, hidden)
        self.L_h = nn.Linear(hidden, embedding.dim)
        self.L_z = nn.Linear(context_dim, embedding.dim, bias=False)
        self.L_o = nn.Linear(embedding.dim, embedding.vocab)
        self.dropout = nn.Dropout(dropout)

    def start(self, memory: Memory, *, steps: int) -> State:
        mask = memory.mask[..., None]
        count = mask.sum(dim=1).clamp(min=1)
        mean = memory.states.masked_fill(~mask, 0.0).sum(dim=1) / count  # [B, D]
        prepared = self.attention.prepare(memory.states)
        attention_state = _add_prefix(self.attention.init_state(prepared))
        per_hypothesis = {"h": self.init_h(mean), "c": self.init_c(mean), **attention_state}
        return State(per_hypothesis, {**prepared, "mask": memory.mask})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        Ey = self.embedding(tokens)  # [B, n, m]
        mask = Mask(keys=state.per_source["mask"])
        h, c = state.per_hypothesis["h"], state.per_hypothesis["c"]
        attention_state = {
            name.removeprefix(_ATTENTION_PREFIX): tensor
            for name, tensor in state.per_hypothesis.items()
            if name.startswith(_ATTENTION_PREFIX)
        }
        hs, zs = [], []
        for t in range(tokens.shape[1]):
            context, attention_state, _ = self.attention(
                h[:, None], state.per_source, mask, state=attention_state
            )
            z = context[:, 0]
            if self.beta is not None:
                z = self.beta(h).sigmoid() * z
            h, c = self.cell(torch.cat([Ey[:, t], z], dim=-1), (h, c))
            hs.append(h)
            zs.append(z)
        deep = Ey + self.L_h(torch.stack(hs, dim=1)) + self.L_z(torch.stack(zs, dim=1))
        logits: Tensor = self.L_o(self.dropout(deep))
        return logits, state.updated({"h": h, "c": c, **_add_prefix(attention_state)})


def _add_prefix(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {_ATTENTION_PREFIX + name: tensor for name, tensor in state.items()}


def _mlp(width: int, hidden: int, layers: int) -> nn.Sequential:
    lower = [module for _ in range(layers - 1) for module in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*lower, nn.Linear(width, hidden), nn.Tanh())
