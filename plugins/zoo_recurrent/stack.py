"""Stacked recurrent layers over a padded batch, in one direction or both.

Notation: B batch, S steps, D input width, H hidden width, L layers.
"""

import torch
from torch import Tensor, nn

from zoo.plugin import Memory
from zoo_recurrent.cells import Cell, RecurrentCell, state_names


class Stack(nn.Module):
    """Stacked recurrent layers, optionally bidirectional.

    Each layer is a loop over the steps that keeps an item's state after its last valid step.
    """

    def __init__(
        self,
        cell: Cell,
        input_dim: int,
        hidden: int,
        layers: int,
        bidirectional: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.cell: Cell = cell
        self.input_dim = input_dim
        self.hidden = hidden
        self.bidirectional = bidirectional
        self.output_dim = hidden * (2 if bidirectional else 1)
        # layers.0.0 runs forward, layers.0.1 backward.
        self.layers = nn.ModuleList(
            nn.ModuleList(
                RecurrentCell(cell, self.output_dim if layer else input_dim, hidden)
                for _ in range(2 if bidirectional else 1)
            )
            for layer in range(layers)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        """Encode inputs [B, S, D] with mask [B, S] as a memory with states [B, S, output_dim]."""
        states, finals = self.run_layers(inputs, mask)
        return Memory(states, mask, finals["h"][:, -1], finals)

    def extra_repr(self) -> str:
        return f"{self.cell}, hidden={self.hidden}, bidirectional={self.bidirectional}"

    def run_layers(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return masked states [B, S, output_dim] and final state tensors [B, L, output_dim]."""
        names = state_names(self.cell)
        finals = []
        # Inputs at padding that are not finite would have gradients that are not.
        states = inputs.masked_fill(~mask[..., None], 0.0)
        for layer, cells in enumerate(self.cells()):
            x = self.dropout(states) if layer else states
            directions = [
                self._run_direction(x, mask, cell, backward=index == 1)
                for index, cell in enumerate(cells)
            ]
            states = torch.cat([outputs for outputs, _ in directions], dim=-1)
            finals.append({n: torch.cat([end[n] for _, end in directions], dim=-1) for n in names})
        ends = {n: torch.stack([final[n] for final in finals], dim=1) for n in names}
        return states * mask[..., None], ends

    def _run_direction(
        self, x: Tensor, mask: Tensor, cell: RecurrentCell, *, backward: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        state = dict.fromkeys(state_names(self.cell), x.new_zeros(x.shape[0], self.hidden))
        S = x.shape[1]
        outputs = []
        for s in reversed(range(S)) if backward else range(S):
            updated = cell(x[:, s], state)
            valid = mask[:, s, None]
            state = {name: torch.where(valid, updated[name], state[name]) for name in state}
            outputs.append(state["h"])
        return torch.stack(outputs[::-1] if backward else outputs, dim=1), state

    def cells(self) -> list[list[RecurrentCell]]:
        """Return the cells of each layer; the second one of a layer runs backward."""
        return [list(layer) for layer in self.layers]  # type: ignore[call-overload]
