"""Acceleration of stacked recurrent layers.

Notation: B batch, S steps, D input width, H hidden width, L layers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from zoo.plugin import Acceleration, Call, Declined
from zoo_fast.recurrent.direction import run_directions
from zoo_fast.recurrent.layer import KERNELS, NOT_CONTIGUOUS
from zoo_recurrent.cells import state_names
from zoo_recurrent.stack import Stack

Layers = tuple[Tensor, dict[str, Tensor]]
"""States [B, S, output_dim] and final state tensors [B, L, output_dim]."""


class StackKernels(Acceleration):
    """Stacked recurrent layers in kernels over all steps.

    On the CPU, torch's kernels run a packed batch. On a GPU, where packing would copy the lengths
    to the host, and under torch.compile, which would unroll them, the batch is padded.
    """

    name: ClassVar[str] = "recurrent-stack-kernels"
    serves: ClassVar[type[Stack]] = Stack
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.float64)
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    traceable: ClassVar[bool] = True

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        device, generator = torch.empty(0).device, torch.Generator("cpu").manual_seed(0)
        for lengths, cell in (((5, 1, 0, 3), "lstm"), ((1,), "gru"), ((2, 4), "gru-cho")):
            stack = Stack(cell, 3, 4, layers=2, bidirectional=cell != "gru", dropout=0.0)  # type: ignore[arg-type]
            shape = (len(lengths), max(lengths))
            inputs = torch.randn(*shape, 3, generator=generator, device="cpu").to(device, dtype)
            steps = torch.arange(shape[1], device=device)
            mask = steps < torch.tensor(lengths, device=device)[:, None]
            yield Call(stack.to(device, dtype), (inputs, mask), method="run_layers")

    def run_layers(self, target: Stack, inputs: Tensor, mask: Tensor) -> Layers | Declined:
        run = padded
        if not (inputs.is_meta or torch.compiler.is_compiling()):
            has_kernel = target.cell in KERNELS
            if not has_kernel and inputs.dtype == torch.float64:
                return Declined("the operator is differentiable once; the dtype is torch.float64")
            run = packed if has_kernel and not inputs.is_cuda else padded
        states, finals = run(target, inputs, mask)
        return states * mask[..., None], finals


def packed(stack: Stack, inputs: Tensor, mask: Tensor) -> Layers:
    """Compute the result of `Stack.run_layers`, not masked, with a packed batch."""
    # An empty item cannot be packed, so one step of zeros is run and its result discarded.
    inputs = inputs.masked_fill(~mask[..., None], 0.0)
    lengths = mask.sum(dim=1)
    packed = pack_padded_sequence(
        inputs, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
    )
    finals: dict[str, list[Tensor]] = {name: [] for name in state_names(stack.cell)}
    for layer, cells in enumerate(stack.cells()):
        if layer:
            packed = _replace_data(packed, stack.dropout(packed.data))
        weights = [weight for cell in cells for weight in cell.weights()]
        outputs, *ends = _run_kernel(stack, packed, weights)
        packed = _replace_data(packed, outputs)
        for name, end in zip(finals, ends, strict=True):  # end: [directions, sorted B, H]
            assert packed.unsorted_indices is not None
            ordered = end.index_select(1, packed.unsorted_indices)
            finals[name].append(ordered.transpose(0, 1).flatten(1))
    states, _ = pad_packed_sequence(packed, batch_first=True, total_length=inputs.shape[1])
    nonempty = (lengths > 0)[:, None, None]
    return states, {name: torch.stack(layers, dim=1) * nonempty for name, layers in finals.items()}


def padded(stack: Stack, inputs: Tensor, mask: Tensor) -> Layers:
    """Compute the result of `Stack.run_layers`, not masked, with a padded batch.

    Each direction runs in one of torch's kernels, or as the operator `decode_sequence` for a
    cell without a kernel, and under torch.compile, which would unroll the kernel. States after
    the last valid step are not masked.
    """
    lengths = mask.sum(dim=1)
    states = inputs.masked_fill(~mask[..., None], 0.0)
    finals: dict[str, list[Tensor]] = {name: [] for name in state_names(stack.cell)}
    for layer, cells in enumerate(stack.cells()):
        x = stack.dropout(states) if layer else states
        directions = run_directions(x, cells, lengths)
        states = torch.cat([h for h, _ in directions], dim=-1)
        for name, layers in finals.items():
            layers.append(torch.cat([end[name] for _, end in directions], dim=-1))
    return states, {name: torch.stack(layers, dim=1) for name, layers in finals.items()}


def _run_kernel(stack: Stack, packed: PackedSequence, weights: list[Tensor]) -> tuple[Tensor, ...]:
    """Run one layer over packed data and return its outputs and final states."""
    data, sizes = packed.data, packed.batch_sizes
    directions = 2 if stack.bidirectional else 1
    zeros = data.new_zeros(directions, int(sizes[0]), stack.hidden)
    initial = (zeros, zeros) if stack.cell == "lstm" else zeros
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", NOT_CONTIGUOUS)
        return KERNELS[stack.cell](
            data, sizes, initial, weights, True, 1, 0.0, stack.training, stack.bidirectional
        )


def _replace_data(packed: PackedSequence, data: Tensor) -> PackedSequence:
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
