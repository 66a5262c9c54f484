"""One direction of a recurrent layer over a padded batch.

Notation: B batch, S steps, D input width, H hidden width.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo_recurrent.attention_sequence import run_sequence
from zoo_recurrent.cells import RecurrentCell, state_names
from zoo_recurrent.layer import has_kernel, run_kernel

Direction = tuple[Tensor, dict[str, Tensor]]
"""States [B, S, H], and state tensors [B, H] after the last valid step, zeros if there is none."""


class SideStream:
    """Runs work beside the current stream of a GPU: inside ``with``, until `join`.

    Tensors that autograd saves inside must be allocated inside. On other devices it has no effect.
    """

    def __init__(self, device: torch.device) -> None:
        self.stream = _side_stream(device) if device.type == "cuda" else None
        self._context: Any = nullcontext()

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream())
            self._context = torch.cuda.stream(self.stream)
        self._context.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._context.__exit__(*exception)

    def join(self, outputs: Iterable[Tensor]) -> None:
        """Make the current stream wait for the work, whose outputs it uses."""
        if self.stream is not None:
            current = torch.cuda.current_stream()
            current.wait_stream(self.stream)
            for output in outputs:
                output.record_stream(current)


@functools.cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def gather(x: Tensor, index: Tensor) -> Tensor:
    """Select positions of x [B, S, D] by index [B, n]."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))


def run_directions(x: Tensor, cells: Sequence[RecurrentCell], lengths: Tensor) -> list[Direction]:
    """Run one or two cells over x [B, S, D], the second one backward.

    The backward direction runs forward over items that are reversed up to their length.
    """
    use_kernel = has_kernel(cells[0], x)
    run = _run_kernel if use_kernel else _run_operator
    if len(cells) == 1:
        return [run(x, cells[0], lengths)]
    if not use_kernel:
        return [run(x, cells[0], lengths), _run_reversed(run, x, cells[1], lengths)]
    side = SideStream(x.device)
    with side:
        h, final = _run_reversed(run, x, cells[1], lengths.clone())
    forward = run(x, cells[0], lengths)
    side.join([h, *final.values()])
    return [forward, (h, final)]


def _run_reversed(
    run: Callable[..., Direction], x: Tensor, cell: RecurrentCell, lengths: Tensor
) -> Direction:
    s, last = torch.arange(x.shape[1], device=x.device), lengths[:, None] - 1
    reversal = torch.where(s <= last, last - s, s)
    h, final = run(gather(x, reversal), cell, lengths)
    return gather(h, reversal), final


def _run_operator(x: Tensor, cell: RecurrentCell, lengths: Tensor) -> Direction:
    """Run a cell over x [B, S, D] as one operator."""
    result = run_sequence(cell, x, _zero_state(x, cell))
    return result.h[:, 1:], {
        name: gather(states, lengths[:, None])[:, 0] for name, states in result.states().items()
    }


def _run_kernel(x: Tensor, cell: RecurrentCell, lengths: Tensor) -> Direction:
    """Run a cell over x [B, S, D] in one of torch's kernels."""
    h, _ = run_kernel(x, cell, _zero_state(x, cell))
    final = {"h": gather(F.pad(h, (0, 0, 1, 0)), lengths[:, None])[:, 0]}
    if cell.cell == "lstm":
        final["c"] = _final_memory(x, h, cell, lengths)
    return h, final


def _zero_state(x: Tensor, cell: RecurrentCell) -> dict[str, Tensor]:
    return dict.fromkeys(state_names(cell.cell), x.new_zeros(len(x), 1, cell.hidden))


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
