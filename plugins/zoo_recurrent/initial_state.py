"""How a recurrent decoder's first state follows from the memory."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Memory
from zoo_recurrent.cells import Cell, state_names

Init = Literal["bridge", "copy", "zeros"]
"""'bridge': h = tanh(W summary); 'copy': go on where a recurrent encoder of the same form
stopped; 'zeros': start from nothing."""


class InitialState(nn.Module):
    """The first state of L layers of H units."""

    def __init__(
        self,
        init: Init,
        cell: Cell,
        *,
        layers: int,
        hidden: int,
        summary_dim: int,
        carry: Mapping[str, tuple[int, int]],
    ) -> None:
        super().__init__()
        self.init = init
        self.layers = layers
        self.hidden = hidden
        self.parts = state_names(cell)
        if init == "bridge":
            if summary_dim == 0:
                raise ZooError("there is no source to make the first state from; use init: zeros")
            self.bridge = nn.Linear(summary_dim, layers * hidden)
        if init == "copy":
            for part in self.parts:
                _check_carry_shape(cell, part, (layers, hidden), carry.get(part))

    def forward(self, memory: Memory) -> dict[str, Tensor]:
        """-> state tensors [B, L, H]"""
        if self.init == "copy":
            return {part: memory.carry[part] for part in self.parts}
        B = memory.summary.shape[0]
        empty = memory.summary.new_zeros(B, self.layers, self.hidden)
        state = dict.fromkeys(self.parts, empty)
        if self.init == "bridge":
            state["h"] = torch.tanh(self.bridge(memory.summary)).view_as(empty)
        return state


def _check_carry_shape(
    cell: Cell, part: str, own: tuple[int, int], encoder: tuple[int, int] | None
) -> None:
    if encoder is None:
        raise ZooError(
            f"init: copy needs the encoder's state '{part}' for cell '{cell}', but the encoder "
            f"carries none; use init: bridge, or an encoder of the same cell"
        )
    if encoder != own:
        raise ZooError(
            f"init: copy needs an encoder of the same form, but it ends in {encoder[0]} layers "
            f"of width {encoder[1]} and this decoder has {own[0]} of {own[1]}; use init: bridge"
        )
