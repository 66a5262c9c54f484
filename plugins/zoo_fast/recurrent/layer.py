"""A recurrent layer over all steps: in one of torch's kernels, or as one operator.

Notation: B batch, S steps, D input width, H hidden width, L layers.
"""

import warnings
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from zoo_fast.recurrent.attention_sequence import run_sequence
from zoo_recurrent.cells import Cell, CellStack, RecurrentCell

KERNELS: dict[Cell, Callable[..., tuple[Tensor, ...]]] = {
    "rnn": torch.rnn_tanh,
    "lstm": torch.lstm,
    "gru": torch.gru,
}
NOT_CONTIGUOUS = "RNN module weights are not part of single"
"""Warning of cuDNN, which copies weights that are not contiguous in memory."""


def run_kernel(
    x: Tensor, cell: RecurrentCell, state: Mapping[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Run a cell over x [B, S, D] from state tensors [B, 1, H] in one of torch's kernels.

    Returns the states [B, S, H] and the last state tensors [B, 1, H].
    """
    initial = [state[name].transpose(0, 1).contiguous() for name in state]  # [1, B, H]
    hx = tuple(initial) if cell.cell == "lstm" else initial[0]
    # cuDNN computes gradients only if it is called for training.
    train, weights = torch.is_grad_enabled(), list(cell.weights())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", NOT_CONTIGUOUS)
        h, *last = KERNELS[cell.cell](x, hx, weights, True, 1, 0.0, train, False, True)
    return h, {name: end.transpose(0, 1) for name, end in zip(state, last, strict=True)}


def has_kernel(cell: RecurrentCell, x: Tensor) -> bool:
    """Whether `run_kernel` can be used; torch.compile would unroll the kernel."""
    return cell.cell in KERNELS and not (x.is_meta or torch.compiler.is_compiling())


def run_stack(
    cells: CellStack, x: Tensor, state: Mapping[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Run stacked cells over x [B, S, D], layer by layer, from state tensors [B, L, H].

    Returns the states of the top layer [B, S, H] and the last state tensors [B, L, H].
    """
    ends: list[dict[str, Tensor]] = []
    for layer, cell in enumerate(cells.layers()):
        own = {name: state[name][:, layer : layer + 1] for name in cells.state_names}
        inputs = cells.drop_inputs(x, layer)
        if has_kernel(cell, x):
            x, last = run_kernel(inputs, cell, own)
        else:
            result = run_sequence(cell, inputs, own)
            x, last = result.h[:, 1:], result.last()
        ends.append(last)
    return x, {name: torch.cat([end[name] for end in ends], dim=1) for name in cells.state_names}
