"""Recurrent cells, and the stack of cells of a decoder.

Notation: B batch, L layers, D input width, H hidden width, G gates.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

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
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def forward(self, x: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return cell_step(self.cell, x, state, self.weights())

    def extra_repr(self) -> str:
        return f"{self.cell}, input_dim={self.input_dim}, hidden={self.hidden}"


class CellStack(nn.Module):
    """Stacked recurrent cells that compute one step at a time."""

    def __init__(
        self, cell: Cell, input_dim: int, hidden: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.state_names = state_names(cell)
        self.cells = nn.ModuleList(
            RecurrentCell(cell, hidden if layer else input_dim, hidden) for layer in range(layers)
        )
        self.dropout = nn.Dropout(dropout)

    def layers(self) -> list[RecurrentCell]:
        """Return the cells, from the lowest layer on."""
        return list(self.cells)  # type: ignore[arg-type]

    def forward(self, x: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Compute one step; state tensors with other names are ignored.

        x [B, D], state tensors [B, L, H] -> state tensors [B, L, H]; the top layer is [:, -1].
        """
        updated: list[dict[str, Tensor]] = []
        for layer, cell in enumerate(self.cells):
            inputs = self.dropout(updated[-1]["h"]) if layer else x
            updated.append(cell(inputs, {name: state[name][:, layer] for name in self.state_names}))
        return {name: torch.stack([s[name] for s in updated], dim=1) for name in self.state_names}
