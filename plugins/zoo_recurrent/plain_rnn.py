"""Recurrent decoder without attention."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from zoo.plugin import Embedding, FromParent
from zoo_recurrent.cells import Cell
from zoo_recurrent.recurrence import Recurrence
from zoo_recurrent.recurrent_decoder import RecurrentDecoder, StepOutput, TensorMapping


class PlainRNN(RecurrentDecoder):
    r"""Recurrent decoder without attention.

    .. math:: s_t = \mathrm{cell}(E y_{t-1}, s_{t-1}), \qquad p(y_t) = \mathrm{softmax}(W s_t + b)

    Paper: Sutskever et al. 2014, section 2.

    Args:
        embedding: target embedding.
        summary_dim: width of the memory's summary.
        carry: layers and width of each tensor of the encoder's final state.
        hidden: width of the state.
        cell: recurrent cell.
        layers: number of layers.
        init: initial state: 'bridge' (tanh of a projection of the summary), 'copy' (the encoder's
            final state) or 'zeros'.
        dropout: dropout probability of the embedded tokens, between layers and before the output.
        tied: compute the logits with the embedding table, W = Eᵀ without a bias (Press and Wolf
            2017); hidden must be the width of the embedding.
        shared_dropout: sample one dropout mask for all steps of a call (Merity et al. 2017,
            section 4.2).
        weight_dropout: dropout probability of the recurrent weights, with one mask for each call
            (Merity et al. 2017, section 2).
        token_dropout: probability that a token ID has a zero embedding at all its positions in a
            call; the output layer is not affected (Merity et al. 2017, section 4.3).

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
        recurrence: Recurrence,
        cell: Cell = "lstm",
        tied: bool = False,
        shared_dropout: bool = False,
        weight_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        token_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__(
            embedding,
            summary_dim,
            carry,
            recurrence,
            cell,
            shared_dropout=shared_dropout,
            weight_dropout=weight_dropout,
            token_dropout=token_dropout,
        )
        self.cells = self.build_cells(embedding.dim)
        self.build_out("hidden", recurrence.hidden, tied=tied)

    def decode_token(
        self, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        updated: dict[str, Tensor] = self.cells(x, state)
        return updated["h"][:, -1], updated
