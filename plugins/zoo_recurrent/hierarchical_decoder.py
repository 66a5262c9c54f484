"""Hierarchical recurrent decoder over sentences and words."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import (
    Attention,
    Blueprint,
    Embedding,
    FromParent,
    Memory,
    State,
    forbid_stochastic,
)
from zoo_recurrent.cells import Cell
from zoo_recurrent.recurrence import Recurrence
from zoo_recurrent.recurrent_decoder import (
    AttentionDecoder,
    StepOutput,
    TensorMapping,
    add_prefix,
)
from zoo_recurrent.vocab_size import vocab_size

_PREFIX = "sentence."


class HierarchicalDecoder(AttentionDecoder):
    r"""Hierarchical decoder: one recurrent network over sentences, with attention, and one over
    the words of each sentence.

    .. math::
        m_k = \mathrm{attend}(g_{k-1}, h), \quad
        g_k = \mathrm{sentences}([e_k; m_k], g_{k-1}), \quad g_0 = e_D

        s_0 = g_k, \quad s_t = \mathrm{words}(E y_t, s_{t-1}), \quad
        p(y_{t+1}) = \mathrm{softmax}(W s_t + b)

    where h are the sentence states of the encoder, e_D its final state, and e_k the state of the
    words after the end of sentence k. The state g_k starts sentence k+1: it is the initial state of
    the words, from which the first word is predicted.

    A target is one sequence: bos, the words of each sentence, each sentence ending with the token
    `sentence_end`, and the end of the document (eos of the model), which is predicted in place of
    the first word of a sentence. The first token (bos) only starts the decoder and is not read.

    Paper: Li et al. 2015, sections 3.3 and 3.4. Both networks have the same cell, width and number
    of layers, and the words start with g_k in every layer.

    Args:
        embedding: target embedding.
        memory_dim: width of the encoder's states.
        summary_dim: width of the memory's summary.
        carry: layers and width of each tensor of the encoder's final state.
        attention: attention over the sentence states of the encoder; the query is the top layer's
            state of the sentences.
        hidden: width of the states.
        sentence_end: token ID that ends a sentence.
        span: number of source words in a sentence, as in the encoder `hierarchical`; attention is
            restricted to the first word of each sentence.
        cell: recurrent cell.
        layers: number of layers.
        init: e_D: 'bridge' (tanh of a projection of the summary), 'copy' (the encoder's final
            state) or 'zeros'.
        dropout: dropout probability of the embedded tokens, between layers and before the output.

    Shapes:
        tokens [B, n] -> logits [B, n, V].
    """

    name: ClassVar[str] = "hierarchical"
    paper: ClassVar[str] = (
        "Li et al. 2015, A Hierarchical Neural Autoencoder for Paragraphs and Documents, "
        "arXiv:1506.01057"
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
        sentence_end: Annotated[int, Field(ge=0)] = 3,
        span: Annotated[int, Field(ge=1, le=128)] = 1,
        cell: Cell = "lstm",
    ) -> None:
        super().__init__(embedding, summary_dim, carry, recurrence, cell)
        hidden = recurrence.hidden
        vocab = vocab_size(embedding)
        if sentence_end >= vocab:
            raise ZooError(f"sentence_end ({sentence_end}) must be less than vocab ({vocab})")
        self.memory_dim, self.sentence_end, self.span = memory_dim, sentence_end, span
        self.cells = self.build_cells(embedding.dim)
        self.attention = attention.build(query_dim=hidden, key_dim=memory_dim)
        # Every step computes a next sentence, and uses it only after the end of a sentence.
        forbid_stochastic(self.attention, "the decoder 'hierarchical'")
        self.sentence_cells = self.build_cells(hidden + self.attention.output_dim)
        self.out = nn.Linear(hidden, vocab)

    def start(self, memory: Memory, *, steps: int) -> State:
        state = super().start(memory, steps=steps)
        words = {name: state.per_hypothesis[name] for name in self.cells.state_names}
        started = torch.zeros_like(memory.summary[:, :1], dtype=torch.bool)
        first = torch.arange(memory.mask.shape[1], device=memory.mask.device) % self.span == 0
        return State(
            {**state.per_hypothesis, **add_prefix(_PREFIX, words), "started": started},
            {**state.per_source, "mask": memory.mask & first},
        )

    def step_inputs(self, tokens: Tensor) -> Tensor:
        embedded = super().step_inputs(tokens)
        ends = (tokens == self.sentence_end)[..., None].to(embedded.dtype)
        return torch.cat([embedded, ends], dim=-1)  # [B, n, E + 1]

    def decode_token(
        self, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        words = {**state, **self.cells(x[:, :-1], state)}
        updated = _where(x[:, -1] > 0, self._next_sentence(words, per_source), words)
        updated = _where(state["started"][:, 0], updated, state)
        updated["started"] = torch.ones_like(state["started"])
        return updated["h"][:, -1], updated

    def _next_sentence(self, state: TensorMapping, per_source: TensorMapping) -> dict[str, Tensor]:
        """Compute the state before the first word of the next sentence."""
        sentence = {name: state[_PREFIX + name] for name in self.cells.state_names}
        context, updated = self.attend(sentence["h"][:, -1], state, per_source)
        inputs = torch.cat([state["h"][:, -1], context], dim=-1)
        sentence = self.sentence_cells(inputs, sentence)
        return {**updated, **sentence, **add_prefix(_PREFIX, sentence)}


def _where(condition: Tensor, state: TensorMapping, other: TensorMapping) -> dict[str, Tensor]:
    """Select the rows of ``state`` where the condition [B] is True, else those of ``other``."""
    return {
        name: torch.where(condition.view(-1, *[1] * (tensor.dim() - 1)), state[name], tensor)
        for name, tensor in other.items()
    }
