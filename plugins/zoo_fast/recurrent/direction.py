"""One direction of a recurrent layer over a padded batch.

Notation: B batch, S steps, D input width, H hidden width.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo_fast.device.triton_support import why_not_triton
from zoo_fast.recurrent.attention_sequence import run_cells
from zoo_fast.recurrent.layer import has_kernel, run_kernel
from zoo_recurrent.cells import RecurrentCell, state_names

LARGE_BATCH = 128
"""Number of items from which cuDNN is used on a GPU."""
Direction = tuple[Tensor, dict[str, Tensor]]
"""States [B, S, H], and state tensors [B, H] after the last valid step, zeros if there is none."""


def gather(x: Tensor, index: Tensor) -> Tensor:
    """Select positions of x [B, S, D] by index [B, n]."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))


class _Reversal(torch.autograd.Function):
    """`gather` by an index that is its own inverse; the backward pass is the same and keeps only
    the index."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        return gather(x, index)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return gather(grad_output, index), None


def _reverse(x: Tensor, index: Tensor) -> Tensor:
    if torch.compiler.is_compiling():
        return gather(x, index)
    result: Tensor = _Reversal.apply(x, index)  # type: ignore[no-untyped-call]
    return result


def run_directions(x: Tensor, cells: Sequence[RecurrentCell], lengths: Tensor) -> list[Direction]:
    """Run one or two cells over x [B, S, D], the second one backward.

    The backward direction runs forward over items that are reversed up to their length. The
    operator computes both directions at once.
    """
    s, last = torch.arange(x.shape[1], device=x.device), lengths[:, None] - 1
    reversal = torch.where(s <= last, last - s, s)
    if _use_kernel(x, cells[0]):
        inputs = [_reverse(x, reversal) if index else x for index in range(len(cells))]
        directions = [_run_kernel(x, cell, lengths) for cell, x in zip(cells, inputs, strict=True)]
    else:
        # The terms are reversed instead of x, so that x is kept for the backward pass once.
        terms = [F.linear(x, cell.weight_ih, cell.bias_ih) for cell in cells]
        reversed_terms = [_reverse(term, reversal) if i else term for i, term in enumerate(terms)]
        directions = _run_operator(reversed_terms, cells, lengths)
    return [
        (_reverse(h, reversal) if index else h, final)
        for index, (h, final) in enumerate(directions)
    ]


def _use_kernel(x: Tensor, cell: RecurrentCell) -> bool:
    """Whether to use a kernel of torch: on a GPU it is faster than the operator for large batches,
    and without Triton."""
    if not has_kernel(cell, x):
        return False
    return len(x) > LARGE_BATCH or why_not_triton(x) is not None


def _run_operator(
    terms: Sequence[Tensor], cells: Sequence[RecurrentCell], lengths: Tensor
) -> list[Direction]:
    """Run each cell over the input terms of its gates [B, S, G * H] in one operator."""
    result, index = run_cells(cells, terms), lengths[:, None].repeat(len(cells), 1)
    finals = {name: gather(states, index)[:, 0] for name, states in result.states().items()}
    parts = result.h[:, 1:].chunk(len(cells))
    return [
        (h, {name: final.chunk(len(cells))[index] for name, final in finals.items()})
        for index, h in enumerate(parts)
    ]


def _run_kernel(x: Tensor, cell: RecurrentCell, lengths: Tensor) -> Direction:
    """Run a cell over x [B, S, D] in one of torch's kernels."""
    zeros = x.new_zeros(len(x), 1, cell.hidden)
    h, _ = run_kernel(x, cell, dict.fromkeys(state_names(cell.cell), zeros))
    final = {"h": gather(F.pad(h, (0, 0, 1, 0)), lengths[:, None])[:, 0]}
    if cell.cell == "lstm":
        final["c"] = _final_memory(x, h, cell, lengths)
    return h, final


def _final_memory(x: Tensor, h: Tensor, cell: RecurrentCell, lengths: Tensor) -> Tensor:
    """Compute the memory cells [B, H] of an LSTM after the last valid step.

    The kernels return those of the last step only. They are the sum over s of i_s g_s, multiplied
    by the forget gates of the later steps.
    """
    W, U, b, d = cell.weights()
    before = F.pad(h[:, :-1], (0, 0, 1, 0))
    i, f, g, _ = (F.linear(x, W, b) + F.linear(before, U, d)).chunk(4, dim=-1)
    valid = (torch.arange(x.shape[1], device=x.device) < lengths[:, None])[..., None]
    log_f = F.logsigmoid(f).masked_fill(~valid, 0.0)
    later = log_f.flip(1).cumsum(dim=1).flip(1) - log_f
    return (later.exp() * i.sigmoid() * g.tanh() * valid).sum(dim=1)
