"""Recurrence with attention over all tokens at once, if the parts allow it.

Notation: see `SequenceInputs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.plugin import Attention
from zoo_fast.attention.score_forms import score_form
from zoo_fast.attention.softmax_dropout import softmax_dropout
from zoo_fast.recurrent.sequence import decode_sequence
from zoo_fast.recurrent.sequence_inputs import SequenceInputs
from zoo_recurrent.cells import CellStack, RecurrentCell

TensorMapping = Mapping[str, Tensor]


def why_not_attention_sequence(cells: CellStack, attention: Attention) -> str | None:
    """Return the reason why the attention cannot be part of `decode_sequence`; None if it can."""
    align = attention.align
    if len(cells.cells) > 1:
        return f"there are {len(cells.cells)} layers"
    if attention.project != "none" or attention.heads > 1:
        return "the attention has several heads or projections"
    if softmax_dropout(align) != 0:
        return f"alignment '{align.name}' is not a softmax without dropout"
    if score_form(attention.scorers.first) is None:
        return f"scorer '{attention.scorers.first.name}' has no score form"
    return "the attention has a state" if attention.sequential else None


class SequenceResult(NamedTuple):
    """States [B, n + 1, H] from the initial one on, and attention weights [B, n, S].

    The memory cells c are empty if the cell has none, the weights if there is no attention.
    """

    h: Tensor
    c: Tensor
    weights: Tensor

    def states(self) -> dict[str, Tensor]:
        """Return the state tensors by name."""
        return {"h": self.h} | ({"c": self.c} if self.c.numel() else {})

    def last(self) -> dict[str, Tensor]:
        """Return the last state tensors [B, 1, H]."""
        return {name: states[:, -1:] for name, states in self.states().items()}


def run_sequence(
    cell: RecurrentCell,
    x: Tensor,
    state: TensorMapping,
    attention: Attention | None = None,
    per_source: TensorMapping | None = None,
    context: Tensor | None = None,
    combine: Tensor | None = None,
) -> SequenceResult:
    """Compute the states of the inputs x [B, n, E]; state tensors are [B, 1, H].

    Args:
        attention: attends to the state before each step; the context is appended to the input.
        per_source: prepared keys and values, and the mask.
        context: context [B, C] of the first step; by default it is computed as the others are.
        combine: weights [H, C + H] of the attentional state tanh(combine [c; h]), which is appended
            to the input instead of the context c; ``context`` is then that of the first step.
    """
    (B, _, E), none = x.shape, x.new_empty(0)
    x_gates = F.linear(x, cell.weight_ih[:, :E], cell.bias_ih)
    W, b, U_n, b_n = recurrent_weights(cell)
    keys = memory_gates = v = W_f = none
    mask, scorer = torch.ones(B, 0, dtype=torch.bool, device=x.device), "none"
    if attention is not None and per_source is not None:
        form = score_form(attention.scorers.first)
        assert form is not None
        keys, mask = per_source["keys"][:, 0], per_source["mask"]
        values, input_weights = per_source["values"][:, 0], cell.weight_ih[:, E:]
        memory_gates = F.linear(
            values, input_weights if combine is None else combine[:, : -cell.hidden]
        )
        scorer = "dot" if form.v is None else "additive"
        v = none if form.v is None else form.v
        if form.weight is not None:
            bias = form.weight.new_zeros(len(form.weight)) if form.bias is None else form.bias
            W, b = torch.cat([form.weight, W]), torch.cat([bias, b])
        if combine is not None:
            W_f, W_s = input_weights, combine[:, -cell.hidden :]
            W, b = torch.cat([W, W_s]), torch.cat([b, b.new_zeros(len(W_s))])
    if context is not None:
        first = x_gates[:, :1] + F.linear(context[:, None], cell.weight_ih[:, E:])
        x_gates = torch.cat([first, x_gates[:, 1:]], dim=1)
    inputs = SequenceInputs(
        x_gates,
        state["h"][:, 0],
        state["c"][:, 0] if cell.cell == "lstm" else none,
        W[None],
        b[None],
        U_n[None],
        b_n[None],
        keys,
        memory_gates,
        v,
        W_f,
        mask,
        cell.cell,
        scorer,
        0 if context is None else 1,
    )
    return SequenceResult(*decode_sequence(inputs))


def run_cells(cells: Sequence[RecurrentCell], x_gates: Sequence[Tensor]) -> SequenceResult:
    """Run several cells of one kind and width from zero states, each over its input terms of the
    gates [B, S, G * H].

    The result has the batches of all cells, one after the other.
    """
    gates = torch.cat(list(x_gates))
    kind, zeros, none = cells[0].cell, gates.new_zeros(len(gates), cells[0].hidden), gates[:0, 0, 0]
    W, b, U_n, b_n = (
        torch.stack(weights)
        for weights in zip(*(recurrent_weights(cell) for cell in cells), strict=True)
    )
    mask = torch.ones(len(gates), 0, dtype=torch.bool, device=gates.device)
    c0 = zeros if kind == "lstm" else none
    settings = (kind, "none", 0)
    tensors = [gates, zeros, c0, W, b, U_n, b_n, none, none, none, none, mask]
    return SequenceResult(*decode_sequence(SequenceInputs.of(tensors, settings)))


def recurrent_weights(cell: RecurrentCell) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return W, b, U_n and b_n of `SequenceInputs`."""
    _, U, _, b = cell.weights()
    rows = 2 * cell.hidden if cell.cell == "gru-cho" else len(U)
    return U[:rows], b[:rows], U[rows:], b[rows:]
