"""One step of a recurrent cell, and stacks of cells for decoders.

Letters: B batch, L layers, D input width, H hidden width.
"""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

Cell = Literal["rnn", "lstm", "gru", "gru-cho"]
"""'gru' applies the reset gate after the recurrent product, as cuDNN does; 'gru-cho' applies it
before, as Cho et al. 2014 and Bahdanau et al. 2015 write it."""

Weights = tuple[Tensor, Tensor, Tensor, Tensor]
"""Input weights [G * H, D], recurrent weights [G * H, H], and the bias of each [G * H]."""

GATES: Mapping[Cell, int] = {"rnn": 1, "lstm": 4, "gru": 3, "gru-cho": 3}


def state_names(cell: Cell) -> tuple[str, ...]:
    """The tensors a cell carries from step to step."""
    return ("h", "c") if cell == "lstm" else ("h",)


def cell_step(
    cell: Cell, x: Tensor, state: Mapping[str, Tensor], weights: Weights
) -> dict[str, Tensor]:
    """One step: x [B, D], state tensors [B, H] -> state tensors [B, H]."""
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
    """The weights of one cell, named as torch.nn names them."""

    def __init__(self, cell: Cell, input_dim: int, hidden: int) -> None:
        super().__init__()
        self.cell = cell
        rows = GATES[cell] * hidden
        self.weight_ih = nn.Parameter(torch.empty(rows, input_dim))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden))
        self.bias_ih = nn.Parameter(torch.empty(rows))
        self.bias_hh = nn.Parameter(torch.empty(rows))
        for weight in self.parameters():
            nn.init.uniform_(weight, -(hidden**-0.5), hidden**-0.5)

    def weights(self) -> Weights:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def forward(self, x: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return cell_step(self.cell, x, state, self.weights())


class CellStack(nn.Module):
    """Cells one above the other, moved step by step."""

    def __init__(
        self, cell: Cell, *, input_dim: int, hidden: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.cells = nn.ModuleList(
            RecurrentCell(cell, hidden if layer else input_dim, hidden) for layer in range(layers)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """x [B, D], state tensors [B, L, H] -> state tensors [B, L, H]; the top is [:, -1]."""
        after: list[dict[str, Tensor]] = []
        for layer, cell in enumerate(self.cells):
            below = x if layer == 0 else self.dropout(after[-1]["h"])
            after.append(cell(below, {key: value[:, layer] for key, value in state.items()}))
        return {key: torch.stack([s[key] for s in after], dim=1) for key in after[0]}
