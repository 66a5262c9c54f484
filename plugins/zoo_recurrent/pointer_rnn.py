"""Recurrent decoder that generates tokens or copies them from the source."""

from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import (
    Attention,
    Blueprint,
    Embedding,
    FromParent,
    Memory,
    State,
    full_precision,
)
from zoo_recurrent.cells import Cell
from zoo_recurrent.recurrence import Recurrence
from zoo_recurrent.recurrent_decoder import AttentionDecoder, StepOutput, TensorMapping
from zoo_recurrent.vocab_size import vocab_size


class PointerRNN(AttentionDecoder):
    r"""Pointer-generator: mixes the vocabulary distribution with a copy of source tokens.

    .. math::
        s_t = \mathrm{cell}([E y_{t-1}; c_{t-1}], s_{t-1}), \quad
        c_t = \sum_i a_{ti} h_i, \quad a_t = \mathrm{attend}(s_t, h)

        p_{\mathrm{gen}} = \sigma(w^\top [s_t; c_t; E y_{t-1}] + b), \quad
        p_{\mathrm{vocab}} = \mathrm{softmax}(V' (V [s_t; c_t] + b) + b')

        p(y_t) = p_{\mathrm{gen}}\, p_{\mathrm{vocab}}(y_t)
            + (1 - p_{\mathrm{gen}}) \sum_{i : x_i = y_t} a_{ti}

    where x are the source tokens. Source and target share one vocabulary, so tokens that are not in
    the vocabulary cannot be copied. The logits are log p, computed in float32 or higher.

    Paper: See et al. 2017, equations 4 and 8 to 9, without coverage.

    Args:
        embedding: target embedding.
        memory_dim: width of the encoder's states.
        summary_dim: width of the memory's summary.
        carry: layers and width of each tensor of the encoder's final state.
        attention: attention over the encoder's states; the query is the top layer's state. With
            several heads, tokens are copied with their mean weights.
        hidden: width of the state.
        cell: recurrent cell.
        layers: number of layers.
        init: initial state: 'bridge' (tanh of a projection of the summary), 'copy' (the encoder's
            final state) or 'zeros'.
        dropout: dropout probability of the embedded tokens, between layers and before the output.

    Shapes:
        tokens [B, n] -> logits [B, n, V].
    """

    name: ClassVar[str] = "pointer-rnn"
    paper: ClassVar[str] = (
        "See et al. 2017, Get To The Point: Summarization with Pointer-Generator Networks, "
        "arXiv:1704.04368"
    )
    needs_source_tokens: ClassVar[bool] = True

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
    ) -> None:
        super().__init__(embedding, summary_dim, carry, recurrence, cell)
        hidden = recurrence.hidden
        self.memory_dim = memory_dim
        self.attention = attention.build(query_dim=hidden, key_dim=memory_dim)
        self.context_dim = self.attention.output_dim
        self.cells = self.build_cells(embedding.dim + self.context_dim)
        self.gate = nn.Linear(hidden + self.context_dim + embedding.dim, 1)
        self.combine = nn.Linear(hidden + self.context_dim, hidden)
        self.out = nn.Linear(hidden, vocab_size(embedding))

    def start(self, memory: Memory, *, steps: int) -> State:
        if memory.tokens is None:
            raise ZooError(
                f"decoder '{self.name}' copies source tokens, but the memory has no token IDs; use "
                "a model with a token source, for example seq2seq"
            )
        state = super().start(memory, steps=steps)
        h = state.per_hypothesis["h"]
        return State(
            {**state.per_hypothesis, "context": h.new_zeros(len(h), self.context_dim)},
            {**state.per_source, "tokens": memory.tokens},
        )

    def decode_token(
        self, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        updated = {**state, **self.cells(torch.cat([x, state["context"]], dim=-1), state)}
        s = updated["h"][:, -1]
        context, weights, updated = self.attend_with_weights(s, updated, per_source)
        updated["context"] = context
        return torch.cat([s, context, x, weights], dim=-1), updated

    def logits(self, features: Tensor, per_source: TensorMapping) -> Tensor:
        tokens = per_source["tokens"]
        combined_dim, S = self.hidden + self.context_dim, tokens.shape[1]
        width = features.shape[-1] - S
        inputs, weights = features[..., :width], features[..., width:]
        gate = full_precision(self.gate(inputs))  # [B, n, 1]
        vocab_logits = self.out(self.dropout(self.combine(inputs[..., :combined_dim])))
        logprobs = full_precision(vocab_logits).log_softmax(dim=-1)  # [B, n, V]
        index = tokens[:, None].expand_as(weights)  # [B, n, S]
        copied = torch.zeros_like(logprobs).scatter_add(2, index, weights.to(logprobs))
        lowest = torch.finfo(copied.dtype).tiny
        mixed = torch.logaddexp(
            F.logsigmoid(gate) + logprobs,
            F.logsigmoid(-gate) + copied.clamp(min=lowest).log(),
        )
        return mixed.to(vocab_logits.dtype)
