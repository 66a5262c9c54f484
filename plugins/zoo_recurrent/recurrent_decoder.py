"""Base classes of the recurrent decoders."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.plugin import Attention, Decoder, Embedding, Mask, Memory, State, WidthConflict
from zoo_recurrent.cells import Cell, CellStack
from zoo_recurrent.dropout_mask import apply_mask, shared_dropout
from zoo_recurrent.initial_state import InitialState
from zoo_recurrent.recurrence import Recurrence
from zoo_recurrent.vocab_size import vocab_size

TensorMapping = Mapping[str, Tensor]
StepOutput = tuple[Tensor, dict[str, Tensor]]
"""The features or context of one step, and the updated per-hypothesis state."""
ATTENTION_PREFIX = "attention."
"""Start of the names of the attention's state in the state of a decoder."""


class RecurrentDecoder(Decoder):
    """Embedding, initial state and the loop over the tokens.

    A subclass creates `cells` and `out`, and implements `decode_token`.
    """

    cells: CellStack
    out: nn.Linear
    tied = False
    input_parts: ClassVar[tuple[str, ...]] = ("initial",)

    def __init__(
        self,
        embedding: Embedding,
        summary_dim: int,
        carry: Mapping[str, tuple[int, int]],
        recurrence: Recurrence,
        cell: Cell,
        *,
        shared_dropout: bool = False,
        weight_dropout: float = 0.0,
        token_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.cell: Cell = cell
        hidden, layers, init = recurrence.hidden, recurrence.layers, recurrence.init
        self.summary_dim, self.hidden, self.layers, self.init = summary_dim, hidden, layers, init
        self.initial = InitialState(init, cell, layers, hidden, summary_dim, carry)
        self.dropout = nn.Dropout(recurrence.dropout)
        self.shared_dropout = shared_dropout
        self.weight_dropout, self.token_dropout = weight_dropout, token_dropout

    def build_cells(self, input_dim: int) -> CellStack:
        """Return the stacked cells for inputs of this width."""
        return CellStack(
            self.cell,
            input_dim,
            self.hidden,
            self.layers,
            self.dropout.p,
            weight_dropout=self.weight_dropout,
            shared_dropout=self.shared_dropout,
        )

    def build_out(self, width: str, value: int, *, tied: bool) -> None:
        """Create the output layer for features of a width, or use the embedding table for it.

        Args:
            width: name of the parameter with the width, for the error message.
            value: the width.
            tied: compute the logits with the embedding table, without a bias.
        """
        self.tied = tied
        if not tied:
            self.out = nn.Linear(value, vocab_size(self.embedding))
        elif self.embedding.dim != value:
            raise WidthConflict(
                f"tied: true needs equal widths of {width} and embedding",
                **{width: value, "dim": self.embedding.dim},
            )

    @abstractmethod
    def decode_token(
        self, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        """Compute features [B, F] and the updated state from the inputs x [B, E] of a step."""

    def decode_tokens(
        self, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        """Decode the inputs x [B, n, E] one step at a time.

        Returns the features [B, n, F] and the updated state.
        """
        steps, updated = [], dict(state)
        for inputs in x.unbind(dim=1):
            features, updated = self.decode_token(inputs, updated, per_source)
            steps.append(features)
        return torch.stack(steps, dim=1), updated

    def step_inputs(self, tokens: Tensor) -> Tensor:
        """Map tokens [B, n] to the inputs [B, n, E] of their steps; the embedded tokens here."""
        embedded = self.embedding(tokens)
        if self.training and self.token_dropout:
            # One mask for the vocabulary: a token ID is dropped at all its positions.
            ones = torch.ones(vocab_size(self.embedding), device=tokens.device)
            mask = F.dropout(ones, self.token_dropout)[tokens]
            embedded = apply_mask(embedded, mask[..., None])
        return self._drop(embedded)

    def _drop(self, x: Tensor) -> Tensor:
        """Apply dropout to x [B, n, D]."""
        if self.training and self.shared_dropout:
            return shared_dropout(self.dropout, x)
        dropped: Tensor = self.dropout(x)
        return dropped

    def output_features(self, features: Tensor) -> Tensor:
        """Map the features [B, n, F] of all steps to the inputs of `out`; the identity here."""
        return features

    def start(self, memory: Memory, *, steps: int) -> State:
        return State(self.initial(memory))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        inputs, per_hypothesis = self.step_inputs(tokens), state.per_hypothesis
        with self.cells.one_call(per_hypothesis["h"]):
            features, updated = self.decode_tokens(inputs, per_hypothesis, state.per_source)
        return self.logits(features, state.per_source), state.updated(updated)

    def logits(self, features: Tensor, per_source: TensorMapping) -> Tensor:
        """Compute the logits [B, n, V] of the features [B, n, F] of all steps."""
        outputs = self._drop(self.output_features(features))
        logits: Tensor = self.embedding.unembed(outputs) if self.tied else self.out(outputs)
        return logits


class AttentionDecoder(RecurrentDecoder):
    """Recurrent decoder with attention; a subclass creates `attention`.

    The decoder state holds the attention's state too, its names with a prefix.
    """

    attention: Attention

    def start(self, memory: Memory, *, steps: int) -> State:
        prepared = self.attention.prepare(memory.states)
        attention_state = add_prefix(ATTENTION_PREFIX, self.attention.init_state(prepared))
        return State(self.initial(memory) | attention_state, {**prepared, "mask": memory.mask})

    def attend(self, query: Tensor, state: TensorMapping, per_source: TensorMapping) -> StepOutput:
        """Compute contexts [B, C] and the updated state of queries [B, H]."""
        mask, previous = Mask(keys=per_source["mask"]), _attention_state(state)
        attended = self.attention(query[:, None], per_source, mask, state=previous)
        return attended.context[:, 0], {**state, **add_prefix(ATTENTION_PREFIX, attended.state)}

    def attend_with_weights(
        self, query: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Compute contexts [B, C], weights averaged over heads [B, S], and the updated state."""
        mask, previous = Mask(keys=per_source["mask"]), _attention_state(state)
        context, updated, weights = self.attention(
            query[:, None], per_source, mask, state=previous, return_weights=True
        )
        return (
            context[:, 0],
            weights[:, :, 0].mean(dim=1),
            {**state, **add_prefix(ATTENTION_PREFIX, updated)},
        )


def _attention_state(state: TensorMapping) -> dict[str, Tensor]:
    return {
        k.removeprefix(ATTENTION_PREFIX): v
        for k, v in state.items()
        if k.startswith(ATTENTION_PREFIX)
    }


def add_prefix(prefix: str, tensors: TensorMapping) -> dict[str, Tensor]:
    """Return the tensors with names that start with the prefix."""
    return {prefix + name: tensor for name, tensor in tensors.items()}
