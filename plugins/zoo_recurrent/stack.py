"""Layers of recurrent cells over a padded batch, in one direction or both.

Letters: B batch, S steps, D input width, H hidden width, L layers.
"""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from zoo.plugin import Memory
from zoo_recurrent.cells import Cell, RecurrentCell, state_names

_KERNELS: dict[Cell, Callable[..., tuple[Tensor, ...]]] = {
    "rnn": torch.rnn_tanh,
    "lstm": torch.lstm,
    "gru": torch.gru,
}


class Stack(nn.Module):
    """What the recurrent encoders share.

    The reference path is a loop over steps that stops an item's state at its last real input.
    The fused path hands a packed batch to torch's kernels; it reads the lengths on the host, so
    the loop runs where that can't be done: on the meta device and under torch.compile.
    """

    def __init__(
        self,
        cell: Cell,
        *,
        input_dim: int,
        hidden: int,
        layers: int,
        bidirectional: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.cell = cell
        self.hidden = hidden
        self.bidirectional = bidirectional
        self.output_dim = hidden * (2 if bidirectional else 1)
        # layers.0.0 reads forward, layers.0.1 backward; torch.compile refuses nn.GRU and its kin.
        self.layers = nn.ModuleList(
            nn.ModuleList(
                RecurrentCell(cell, self.output_dim if layer else input_dim, hidden)
                for _ in range(2 if bidirectional else 1)
            )
            for layer in range(layers)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        """inputs [B, S, D], mask [B, S] -> memory of states [B, S, output_dim]."""
        loop = self.cell not in _KERNELS or inputs.is_meta or torch.compiler.is_compiling()
        states, finals = self.reference(inputs, mask) if loop else self.fused(inputs, mask)
        states = states * mask[..., None]
        return Memory(states, mask, finals["h"][:, -1], finals)

    def reference(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """-> states [B, S, output_dim], final state tensors [B, L, output_dim]"""
        finals = []
        states = inputs
        for index, cells in enumerate(self._cells()):
            x = self.dropout(states) if index else states
            directions = [
                self._run_direction(x, mask, one, backward=direction == 1)
                for direction, one in enumerate(cells)
            ]
            states = torch.cat([direction[0] for direction in directions], dim=-1)
            finals.append(
                {
                    p: torch.cat([direction[1][p] for direction in directions], dim=-1)
                    for p in directions[0][1]
                }
            )
        return states, {part: torch.stack([f[part] for f in finals], dim=1) for part in finals[0]}

    def _run_direction(
        self, x: Tensor, mask: Tensor, one: RecurrentCell, *, backward: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        state = dict.fromkeys(state_names(self.cell), x.new_zeros(x.shape[0], self.hidden))
        S = x.shape[1]
        outputs = []
        for s in reversed(range(S)) if backward else range(S):
            after = one(x[:, s], state)
            real = mask[:, s, None]
            state = {part: torch.where(real, after[part], state[part]) for part in state}
            outputs.append(state["h"])
        return torch.stack(outputs[::-1] if backward else outputs, dim=1), state

    def fused(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The same through torch's kernels."""
        inputs = inputs.masked_fill(~mask[..., None], 0.0)  # an empty item is read for one step
        lengths = mask.sum(dim=1)
        counted = lengths.clamp(min=1).cpu()  # packing refuses empty items
        packed = pack_padded_sequence(inputs, counted, batch_first=True, enforce_sorted=False)
        finals: dict[str, list[Tensor]] = {part: [] for part in state_names(self.cell)}
        for index, cells in enumerate(self._cells()):
            if index:
                packed = _replace_data(packed, self.dropout(packed.data))
            weights = [weight for one in cells for weight in one.weights()]
            outputs, *ends = self._run_kernel(packed, weights)
            packed = _replace_data(packed, outputs)
            for part, end in zip(finals, ends, strict=True):  # end: [directions, sorted B, H]
                assert packed.unsorted_indices is not None
                ordered = end.index_select(1, packed.unsorted_indices)
                finals[part].append(ordered.transpose(0, 1).flatten(1))
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=inputs.shape[1])
        nonempty = (lengths > 0)[:, None, None]
        return states, {
            part: torch.stack(layers, dim=1) * nonempty for part, layers in finals.items()
        }

    def _cells(self) -> list[list[RecurrentCell]]:
        return [list(layer) for layer in self.layers]  # type: ignore[call-overload]

    def _run_kernel(self, packed: PackedSequence, weights: list[Tensor]) -> tuple[Tensor, ...]:
        """One layer over packed data -> its outputs and last states."""
        data, sizes = packed.data, packed.batch_sizes
        directions = 2 if self.bidirectional else 1
        zeros = data.new_zeros(directions, int(sizes[0]), self.hidden)
        first = (zeros, zeros) if self.cell == "lstm" else zeros
        with warnings.catch_warnings():
            # cuDNN wants the weights in one piece, and gathers them itself if they are not.
            warnings.filterwarnings("ignore", "RNN module weights are not part of single")
            return _KERNELS[self.cell](
                data, sizes, first, weights, True, 1, 0.0, self.training, self.bidirectional
            )


def _replace_data(packed: PackedSequence, data: Tensor) -> PackedSequence:
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
