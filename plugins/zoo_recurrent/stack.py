"""Stacked recurrent layers over a padded batch, in one direction or both.

Notation: B batch, S steps, D input width, H hidden width, L layers.
"""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from zoo.plugin import Memory, has_hooks
from zoo_recurrent.cells import Cell, RecurrentCell, state_names
from zoo_recurrent.direction import run_directions
from zoo_recurrent.layer import KERNELS, NOT_CONTIGUOUS

Path = Callable[[Tensor, Tensor], tuple[Tensor, dict[str, Tensor]]]


class Stack(nn.Module):
    """Stacked recurrent layers, optionally bidirectional.

    The reference path loops over the steps and keeps an item's state after its last valid step.
    The fused paths call kernels instead of the cells: on the CPU with a packed batch; on a GPU,
    where packing would copy the lengths to the host, and under torch.compile with a padded one. The
    reference path is used when a cell has hooks.
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
        # layers.0.0 runs forward, layers.0.1 backward. nn.GRU and nn.LSTM break torch.compile.
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
        states, finals = self._select_path(inputs)(inputs, mask)
        states = states * mask[..., None]
        return Memory(states, mask, finals["h"][:, -1], finals)

    def _select_path(self, inputs: Tensor) -> Path:
        if has_hooks(self.layers):
            return self.reference
        if inputs.is_meta or torch.compiler.is_compiling():
            return self.padded
        if self.cell not in KERNELS:
            # The operator is differentiable once.
            return self.reference if inputs.dtype == torch.float64 else self.padded
        return self.padded if inputs.is_cuda else self.packed

    def extra_repr(self) -> str:
        return f"{self.cell}, hidden={self.hidden}, bidirectional={self.bidirectional}"

    def reference(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return states [B, S, output_dim] and final state tensors [B, L, output_dim]."""
        names = state_names(self.cell)
        finals = []
        states = inputs
        for layer, cells in enumerate(self._cells()):
            x = self.dropout(states) if layer else states
            directions = [
                self._run_direction(x, mask, cell, backward=index == 1)
                for index, cell in enumerate(cells)
            ]
            states = torch.cat([outputs for outputs, _ in directions], dim=-1)
            finals.append({n: torch.cat([end[n] for _, end in directions], dim=-1) for n in names})
        return states, {n: torch.stack([final[n] for final in finals], dim=1) for n in names}

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

    def packed(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the result of `reference` with torch's kernels and a packed batch."""
        # An empty item cannot be packed, so one step of zeros is run and its result discarded.
        inputs = inputs.masked_fill(~mask[..., None], 0.0)
        lengths = mask.sum(dim=1)
        packed = pack_padded_sequence(
            inputs, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        finals: dict[str, list[Tensor]] = {name: [] for name in state_names(self.cell)}
        for layer, cells in enumerate(self._cells()):
            if layer:
                packed = _replace_data(packed, self.dropout(packed.data))
            weights = [weight for cell in cells for weight in cell.weights()]
            outputs, *ends = self._run_kernel(packed, weights)
            packed = _replace_data(packed, outputs)
            for name, end in zip(finals, ends, strict=True):  # end: [directions, sorted B, H]
                assert packed.unsorted_indices is not None
                ordered = end.index_select(1, packed.unsorted_indices)
                finals[name].append(ordered.transpose(0, 1).flatten(1))
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=inputs.shape[1])
        nonempty = (lengths > 0)[:, None, None]
        return states, {
            name: torch.stack(layers, dim=1) * nonempty for name, layers in finals.items()
        }

    def padded(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the result of `reference` with a padded batch.

        Each direction runs in one of torch's kernels, or as the operator `decode_sequence` for a
        cell without a kernel, and under torch.compile, which would unroll the kernel. States after
        the last valid step are not masked.
        """
        lengths = mask.sum(dim=1)
        states = inputs.masked_fill(~mask[..., None], 0.0)
        finals: dict[str, list[Tensor]] = {name: [] for name in state_names(self.cell)}
        for layer, cells in enumerate(self._cells()):
            x = self.dropout(states) if layer else states
            directions = run_directions(x, cells, lengths)
            states = torch.cat([h for h, _ in directions], dim=-1)
            for name, layers in finals.items():
                layers.append(torch.cat([end[name] for _, end in directions], dim=-1))
        return states, {name: torch.stack(layers, dim=1) for name, layers in finals.items()}

    def _cells(self) -> list[list[RecurrentCell]]:
        return [list(layer) for layer in self.layers]  # type: ignore[call-overload]

    def _run_kernel(self, packed: PackedSequence, weights: list[Tensor]) -> tuple[Tensor, ...]:
        """Run one layer over packed data and return its outputs and final states."""
        data, sizes = packed.data, packed.batch_sizes
        directions = 2 if self.bidirectional else 1
        zeros = data.new_zeros(directions, int(sizes[0]), self.hidden)
        initial = (zeros, zeros) if self.cell == "lstm" else zeros
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", NOT_CONTIGUOUS)
            return KERNELS[self.cell](
                data, sizes, initial, weights, True, 1, 0.0, self.training, self.bidirectional
            )


def _replace_data(packed: PackedSequence, data: Tensor) -> PackedSequence:
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
