"""Layers of recurrent cells over a padded batch, in one direction or both.

Letters: B batch, S steps, D input width, H hidden width, L layers.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from zoo import Memory
from zoo_recurrent.cells import Cell, Weights, advance, parts_of_state

_LAYERS: dict[Cell, Callable[..., nn.RNNBase]] = {
    "rnn": nn.RNN,
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "gru-cho": nn.GRU,
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
        self.layers = nn.ModuleList(
            _LAYERS[cell](
                self.output_dim if layer else input_dim,
                hidden,
                batch_first=True,
                bidirectional=bidirectional,
            )
            for layer in range(layers)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        """inputs [B, S, D], mask [B, S] -> memory of states [B, S, output_dim]."""
        loop = self.cell == "gru-cho" or inputs.is_meta or torch.compiler.is_compiling()
        states, finals = self.reference(inputs, mask) if loop else self.fused(inputs, mask)
        states = states * mask[..., None]
        return Memory(states, mask, finals["h"][:, -1], finals)

    def reference(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """-> states [B, S, output_dim], final state tensors [B, L, output_dim]"""
        finals = []
        states = inputs
        for index, layer in enumerate(self.layers):
            x = self.dropout(states) if index else states
            ways = [self._way(x, mask, layer, backward=False)]
            if self.bidirectional:
                ways.append(self._way(x, mask, layer, backward=True))
            states = torch.cat([way[0] for way in ways], dim=-1)
            finals.append({p: torch.cat([way[1][p] for way in ways], dim=-1) for p in ways[0][1]})
        return states, {part: torch.stack([f[part] for f in finals], dim=1) for part in finals[0]}

    def _way(
        self, x: Tensor, mask: Tensor, layer: nn.Module, *, backward: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        weights = _weights(layer, "_reverse" if backward else "")
        state = dict.fromkeys(parts_of_state(self.cell), x.new_zeros(x.shape[0], self.hidden))
        S = x.shape[1]
        outputs = []
        for s in reversed(range(S)) if backward else range(S):
            after = advance(self.cell, x[:, s], state, weights)
            real = mask[:, s, None]
            state = {part: torch.where(real, after[part], state[part]) for part in state}
            outputs.append(state["h"])
        return torch.stack(outputs[::-1] if backward else outputs, dim=1), state

    def fused(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The same through torch's kernels."""
        lengths = mask.sum(dim=1)
        counted = lengths.clamp(min=1).cpu()  # packing refuses empty items
        packed = pack_padded_sequence(inputs, counted, batch_first=True, enforce_sorted=False)
        finals: dict[str, list[Tensor]] = {part: [] for part in parts_of_state(self.cell)}
        for index, layer in enumerate(self.layers):
            if index:
                packed = _with_data(packed, self.dropout(packed.data))
            packed, last = layer(packed)
            ends = last if self.cell == "lstm" else (last,)
            for part, end in zip(finals, ends, strict=True):  # end: [directions, B, H]
                finals[part].append(end.transpose(0, 1).flatten(1))
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=inputs.shape[1])
        nonempty = (lengths > 0)[:, None, None]
        return states, {
            part: torch.stack(layers, dim=1) * nonempty for part, layers in finals.items()
        }


def _weights(layer: nn.Module, suffix: str) -> Weights:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    w, u, b, d = (getattr(layer, f"{name}_l0{suffix}") for name in names)
    return w, u, b, d


def _with_data(packed: PackedSequence, data: Tensor) -> PackedSequence:
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
