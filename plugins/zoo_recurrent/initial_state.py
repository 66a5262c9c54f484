"""Initial state of a recurrent decoder."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Memory
from zoo_recurrent.cells import Cell, state_names

Init = Literal["bridge", "copy", "zeros"]
"""'bridge': h = tanh(W summary + b); 'copy': the final state of a recurrent encoder with the same
cell, layers and width; 'zeros': zeros."""


class InitialState(nn.Module):
    """Computes the initial state of L layers of H units from the memory."""

    def __init__(
        self,
        init: Init,
        cell: Cell,
        layers: int,
        hidden: int,
        summary_dim: int,
        carry: Mapping[str, tuple[int, int]],
    ) -> None:
        super().__init__()
        self.init = init
        self.layers = layers
        self.hidden = hidden
        self.state_names = state_names(cell)
        if init == "bridge":
            if summary_dim == 0:
                raise ZooError(
                    "init: bridge needs a source, but this decoder has none; use init: zeros"
                )
            self.bridge = nn.Linear(summary_dim, layers * hidden)
        if init == "copy":
            for name in self.state_names:
                _check_carry_shape(cell, name, (layers, hidden), carry.get(name))

    def forward(self, memory: Memory) -> dict[str, Tensor]:
        """Return state tensors [B, L, H]."""
        if self.init == "copy":
            return {name: memory.carry[name] for name in self.state_names}
        zeros = memory.summary.new_zeros(len(memory.summary), self.layers, self.hidden)
        state = dict.fromkeys(self.state_names, zeros)
        if self.init == "bridge":
            state["h"] = torch.tanh(self.bridge(memory.summary)).view_as(zeros)
        return state

    def extra_repr(self) -> str:
        return f"{self.init}, layers={self.layers}, hidden={self.hidden}"


def _check_carry_shape(
    cell: Cell, name: str, expected: tuple[int, int], actual: tuple[int, int] | None
) -> None:
    if actual is None:
        raise ZooError(
            f"init: copy needs the final state '{name}' for cell '{cell}', which the encoder does "
            "not return; use init: bridge, or an encoder with the same cell"
        )
    if actual != expected:
        raise ZooError(
            f"init: copy needs an encoder of the same shape, but the encoder has {actual[0]} "
            f"layers of width {actual[1]} and this decoder has {expected[0]} of width "
            f"{expected[1]}; use init: bridge"
        )
