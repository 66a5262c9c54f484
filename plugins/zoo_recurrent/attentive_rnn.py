"""Recurrent decoder that attends before its recurrent step (Bahdanau)."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Attention, Blueprint, Embedding, FromParent
from zoo_recurrent.cells import Cell
from zoo_recurrent.recurrence import Recurrence
from zoo_recurrent.recurrent_decoder import AttentionDecoder, StepOutput, TensorMapping


class AttentiveRNN(AttentionDecoder):
    r"""Recurrent decoder with attention before the recurrent step.

    .. math::
        c_i = \mathrm{attend}(s_{i-1}, h), \quad s_i = \mathrm{cell}([E y_{i-1}; c_i], s_{i-1})

        p(y_i) = \mathrm{softmax}(W_o\, \mathrm{maxout}(U_o s_i + V_o E y_{i-1} + C_o c_i))

    where h are the encoder states, and maxout is the maximum over pairs of units. With output
    'linear', p(y_i) = softmax(W [s_i; c_i] + b).

    Paper: Bahdanau et al. 2015, section 3.1 and appendix A.2.2. The output layer uses s_i, as in
    equation 4 (the appendix has s_{i-1}). With init 'bridge', the initial state is computed from
    the whole summary; the paper uses its backward half.

    Args:
        embedding: target embedding.
        memory_dim: width of the encoder's states.
        summary_dim: width of the memory's summary.
        carry: layers and width of each tensor of the encoder's final state.
        attention: attention over the encoder's states; the query is the top layer's state.
        hidden: width of the state.
        readout: width of the maxout layer; by default hidden // 2, at least 1.
        output: 'maxout' as in the paper, or 'linear': logits W [s; c] + b without a hidden layer.
        cell: recurrent cell.
        layers: number of layers.
        init: initial state: 'bridge' (tanh of a projection of the summary), 'copy' (the encoder's
            final state) or 'zeros'.
        dropout: dropout probability of the embedded tokens, between layers and before the output.
        tied: compute the logits with the embedding table, W = Eᵀ without a bias (Press and Wolf
            2017); readout must be the width of the embedding.

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
        recurrence: Recurrence,
        readout: Annotated[int, Field(ge=1)] | None = None,
        cell: Cell = "gru",
        output: Literal["maxout", "linear"] = "maxout",
        tied: bool = False,
    ) -> None:
        super().__init__(embedding, summary_dim, carry, recurrence, cell)
        hidden = recurrence.hidden
        self.memory_dim = memory_dim
        self.attention = attention.build(query_dim=hidden, key_dim=memory_dim)
        context_dim = self.attention.output_dim
        self.cells = self.build_cells(embedding.dim + context_dim)
        self.output = output
        if output == "linear":
            if readout is not None:
                raise ZooError(f"readout ({readout}) needs output: maxout, but output is linear")
            if tied:
                raise ZooError("tied: true needs output: maxout, but output is linear")
            self.build_out("hidden", hidden + context_dim, tied=False)
            return
        readout = readout or max(hidden // 2, 1)
        self.readout = nn.Linear(hidden + embedding.dim + context_dim, 2 * readout)
        self.build_out("readout", readout, tied=tied)

    def decode_token(
        self, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        context, updated = self.attend(state["h"][:, -1], state, per_source)
        updated |= self.cells(torch.cat([x, context], dim=-1), state)
        parts = self.feature_parts(updated["h"][:, -1], x, context)
        return torch.cat(parts, dim=-1), updated

    def feature_parts(self, s: Tensor, x: Tensor, context: Tensor) -> list[Tensor]:
        """Return what the output layer reads of state s, input x and context."""
        return [s, context] if self.output == "linear" else [s, x, context]

    def output_features(self, features: Tensor) -> Tensor:
        if self.output == "linear":
            return features
        pieces = self.readout(features)  # [B, n, 2 * readout]
        maxout: Tensor = pieces.unflatten(-1, (-1, 2)).amax(dim=-1)
        return maxout
