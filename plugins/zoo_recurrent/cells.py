"""Recurrent cells, and the stack of cells of a decoder.

Notation: B batch, L layers, D input width, H hidden width, G gates.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo_recurrent.dropout_mask import apply_mask, sample_mask

Cell = Literal["rnn", "lstm", "gru", "gru-cho"]
"""'gru' applies the reset gate after the recurrent product, as cuDNN does; 'gru-cho' applies it
before, as in Cho et al. 2014 and Bahdanau et al. 2015."""

Weights = tuple[Tensor, Tensor, Tensor, Tensor]
"""Input weights [G * H, D], recurrent weights [G * H, H], and the bias of each [G * H]."""

GATES: Mapping[Cell, int] = {"rnn": 1, "lstm": 4, "gru": 3, "gru-cho": 3}


def state_names(cell: Cell) -> tuple[str, ...]:
    """Return the names of a cell's state tensors."""
    return ("h", "c") if cell == "lstm" else ("h",)


def cell_step(
    cell: Cell, x: Tensor, state: Mapping[str, Tensor], weights: Weights
) -> dict[str, Tensor]:
    """Compute one step: x [B, D], state tensors [B, H] -> state tensors [B, H]."""
    h = state["h"]
    if cell == "lstm":
        h, c = torch.lstm_cell(x, (h, state["c"]), *weights)
        return {"h": h, "c": c}
    if cell == "gru":
        return {"h": torch.gru_cell(x, h, *weights)}
    if cell == "rnn":
        return {"h": torch.rnn_tanh_cell(x, h, *weights)}
    return {"h": _gru_cho_cell(x, h, weights)}


def _gru_cho_cell(x: Tensor, h: Tensor, weights: Weights) -> Tensor:
    W, U, b, d = weights
    H = h.shape[-1]
    wr, wz, wn = (x @ W.T + b).chunk(3, dim=-1)
    ur, uz = (h @ U[: 2 * H].T + d[: 2 * H]).chunk(2, dim=-1)
    r, z = (wr + ur).sigmoid(), (wz + uz).sigmoid()
    n = (wn + (r * h) @ U[2 * H :].T + d[2 * H :]).tanh()
    return (1 - z) * n + z * h


class RecurrentCell(nn.Module):
    """Recurrent cell with the parameter names of ``torch.nn``."""

    weight_roles: ClassVar[Mapping[str, str]] = {"weight_hh": "recurrent"}

    def __init__(self, cell: Cell, input_dim: int, hidden: int) -> None:
        super().__init__()
        self.cell = cell
        self.input_dim = input_dim
        self.hidden = hidden
        self.dropped_hh: Tensor | None = None
        rows = GATES[cell] * hidden
        self.weight_ih = nn.Parameter(torch.empty(rows, input_dim))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden))
        self.bias_ih = nn.Parameter(torch.empty(rows))
        self.bias_hh = nn.Parameter(torch.empty(rows))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.hidden**-0.5
        for weight in self.parameters():
            nn.init.uniform_(weight, -bound, bound)

    def weights(self) -> Weights:
        """Return the weights; `dropped_hh` replaces the recurrent weights if it is set."""
        weight_hh = self.weight_hh if self.dropped_hh is None else self.dropped_hh
        return self.weight_ih, weight_hh, self.bias_ih, self.bias_hh

    def forward(self, x: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return cell_step(self.cell, x, state, self.weights())

    def extra_repr(self) -> str:
        return f"{self.cell}, input_dim={self.input_dim}, hidden={self.hidden}"


class CellStack(nn.Module):
    """Stacked recurrent cells that compute one step at a time.

    Args:
        cell: recurrent cell.
        input_dim: width of the inputs.
        hidden: width of the states.
        layers: number of layers.
        dropout: dropout probability between layers.
        weight_dropout: dropout probability of the recurrent weights inside `one_call`.
        shared_dropout: use one mask between layers for all steps inside `one_call`.
    """

    def __init__(
        self,
        cell: Cell,
        input_dim: int,
        hidden: int,
        layers: int,
        dropout: float,
        *,
        weight_dropout: float = 0.0,
        shared_dropout: bool = False,
    ) -> None:
        super().__init__()
        self.state_names = state_names(cell)
        self.cells = nn.ModuleList(
            RecurrentCell(cell, hidden if layer else input_dim, hidden) for layer in range(layers)
        )
        self.dropout = nn.Dropout(dropout)
        self.weight_dropout, self.shared_dropout = weight_dropout, shared_dropout
        self._masks: Sequence[Tensor] = ()  # [B, H] for each layer but the first

    def layers(self) -> list[RecurrentCell]:
        """Return the cells, from the lowest layer on."""
        return list(self.cells)  # type: ignore[arg-type]

    @contextmanager
    def one_call(self, h: Tensor) -> Iterator[None]:
        """Sample the dropout masks that all steps inside the block share; h [B, L, H] is the state.

        The parameters are not modified.
        """
        try:
            if self.training and self.weight_dropout:
                for cell in self.layers():
                    cell.dropped_hh = F.dropout(cell.weight_hh, self.weight_dropout)
            if self.training and self.shared_dropout:
                self._masks = [sample_mask(self.dropout, h[:, 0]) for _ in self.layers()[1:]]
            yield
        finally:
            self._masks = ()
            for cell in self.layers():
                cell.dropped_hh = None

    def drop_inputs(self, x: Tensor, layer: int) -> Tensor:
        """Apply dropout to the inputs of a layer, [B, H] or [B, S, H]; the first layer has none."""
        if not layer:
            return x
        if not self._masks:
            dropped: Tensor = self.dropout(x)
            return dropped
        mask = self._masks[layer - 1]
        return apply_mask(x, mask if x.dim() == 2 else mask[:, None])

    def forward(self, x: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Compute one step; state tensors with other names are ignored.

        x [B, D], state tensors [B, L, H] -> state tensors [B, L, H]; the top layer is [:, -1].
        """
        before = {name: state[name].unbind(dim=1) for name in self.state_names}
        updated: list[dict[str, Tensor]] = []
        for layer, cell in enumerate(self.cells):
            inputs = self.drop_inputs(updated[-1]["h"] if layer else x, layer)
            updated.append(cell(inputs, {name: each[layer] for name, each in before.items()}))
        return {name: torch.stack([s[name] for s in updated], dim=1) for name in self.state_names}
